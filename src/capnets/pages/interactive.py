"""Build the interactive page: one HTML file with networks, sets and runtime."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.added import caution, common_sizes
from capnets.explain.render.instances import Features, Images, Texts
from capnets.explain.subject import target_of
from capnets.ingest import FeatureFolder, Schema
from capnets.pages.examples import Examples, examples_of
from capnets.pages.runtime import NAME, Runtime, find_runtime
from capnets.progress import TitledProgress
from capnets.runs import Run
from capnets.tasks.sentences import sentence_model

__all__ = ["interactive_page", "page_data", "script"]

#: The modules of the page, each before those that import it.
MODULES = (
    "orders.js", "csv.js", "schema.js", "backend.js", "session.js", "format.js", "drag.js",
    "drawing.js", "map.js",
    "view.js", "main.js",
)  # fmt: skip
#: Nouns for instances in the heading.
NOUNS = {"Images": "image", "Texts": "sentence", "Features": "instance"}
#: Features shown per instance of a table.
COLUMNS = 4


def interactive_page(
    runs: Sequence[Run],
    file: str | Path | FeatureFolder | None = None,
    *,
    sets: str | None = None,
    show: str | None = None,
    protocol: str | None = None,
    title: str = "",
    runtime: Runtime | None = None,
    service: Sequence[str] | None = None,
    progress: TitledProgress | None = None,
) -> str:
    """Return a page on which users can edit sets and see the values change.

    The page is self-contained: it makes no request and works from a file.

    Parameters
    ----------
    runs
        Networks to show side by side; all must read the same features.
    file
        The sets, for runs on a file or on a feature folder; runs on a task draw their own.
    sets, show, protocol
        As in `examples_of`.
    title
        The heading.
    runtime
        onnxruntime-web; by default the installed one.
    service
        Names of the networks in the service that sends the page and computes for it; the page then
        holds neither graphs nor runtime.
    progress
        Called while files and features of a task are prepared.
    """
    if not runs:
        raise InputError("a page needs at least one run")
    for run in runs:
        if run.model.covariates:
            raise InputError(
                f"{run.folder}: interactive pages do not support covariates yet; "
                "`capnets explain RUN FILE --html` writes a page with values"
            )
    if service is None:
        runtime = runtime or find_runtime()
    examples = examples_of(
        runs[0], file, sets=sets, show=show, protocol=protocol, progress=progress
    )
    data = page_data(runs, examples, title=title)
    if service is not None:
        data["sentences"] = sentence_model(runs[0].config.data) is not None
        for network, name in zip(data["networks"], service, strict=True):
            network |= {"service": name, "graphs": {}}
    return _assemble(data, runtime)


def page_data(runs: Sequence[Run], examples: Examples, *, title: str = "") -> dict[str, Any]:
    """Return everything that a page shows and computes with, as JSON."""
    seen = common_sizes(examples.sets)
    networks = [
        {**_network(run), "caution": caution(run.model, run.config.sizes or seen)} for run in runs
    ]
    shapes = {tuple(network["shape"]) for network in networks}
    if len(shapes) > 1:
        shown = " and ".join(sorted(" x ".join(map(str, shape)) for shape in shapes))
        raise InputError(f"the runs read different features: {shown}; make one page per run")
    for network, count in zip(networks, _counts(networks), strict=True):
        network["name"] += count
    sets, places = examples.sets, _places(examples)
    noun = NOUNS[type(examples.instances).__name__] if places is None else "tile"
    return {
        "title": title or f"What each {noun} adds",
        "source": examples.source,
        "unit": examples.unit,
        "kind": type(examples.instances).__name__.lower(),
        "shape": list(sets.feature_shape),
        "instances": _base64(np.ascontiguousarray(sets.instances, dtype="<f4").tobytes()),
        "display": _display(examples),
        "sets": [
            {
                "name": examples.names[k],
                "rows": [int(row) for row in sets.rows(k)],
                "label": None if examples.labels is None else examples.labels[k],
            }
            for k in range(len(sets))
        ],
        "tray": list(examples.tray),
        "places": places,
        "networks": networks,
        "pixels": None if examples.pixels is None else asdict(examples.pixels),
        "sentences": False,  # only a service can embed new ones
        "schema": _readable(examples.schema),
    }


def _readable(schema: Schema | None) -> dict[str, Any] | None:
    """Return the schema if the page can read tables by it: of numbers and categories only."""
    plain = schema is not None and all(f.kind in ("number", "category") for f in schema.features)
    return schema.to_dict() if schema is not None and plain else None


def _network(run: Run) -> dict[str, Any]:
    """Return graph and meaning of one network."""
    from capnets.export.onnx import feature_shape, graphs

    model, data = run.model, run.config.data
    target = target_of(run)
    if target.kind == "count":
        raise InputError("interactive pages do not show counts; use `capnets explain … --html`")
    built = graphs(model)
    return {
        "name": run.config.model.title,
        "additive": model.additive,
        "ordered": model.ordered,
        "shape": list(feature_shape(model)),
        "baseline": model.baseline.detach().tolist(),
        "outputs": target.output_names,
        "kind": target.kind,
        "classes": [str(c) for c in target.classes],
        "orders": int(data.get("orders") or 1),
        "graphs": {
            name: _base64(gzip.compress(graph, mtime=0))
            for name, graph in built.items()
            if name in ("sets", "step")
        },
    }


def _counts(networks: list[dict[str, Any]]) -> list[str]:
    """Return a suffix for every network that shares its name with an earlier one."""
    seen: dict[str, int] = {}
    found = []
    for network in networks:
        seen[network["name"]] = seen.get(network["name"], 0) + 1
        many = seen[network["name"]]
        found.append("" if many == 1 else f" ({many})")
    return found


def _display(examples: Examples) -> list[dict[str, Any]]:
    """Return what the page shows of every row: a label, an image, or features."""
    shown = examples.instances
    count = len(examples.sets.instances)
    if isinstance(shown, Images):
        return [{"label": shown.label(i), "image": shown.uri(i)} for i in range(count)]
    if isinstance(shown, Texts):
        return [{"label": shown.label(i)} for i in range(count)]
    assert isinstance(shown, Features)
    return [{"label": shown.label(i), "features": _described(shown, i)} for i in range(count)]


def _places(examples: Examples) -> list[list[float]] | None:
    """Return x, y and side of every tile; None if there is no map.

    The files of a set stand side by side.
    """
    shown = examples.instances
    if not isinstance(shown, Features) or shown.places is None:
        return None
    places, sets = shown.places, examples.sets
    found = np.empty((len(places.coords), 3))
    for k in range(len(sets)):
        rows, left = sets.rows(k), 0.0
        for f in np.unique(places.file[rows]):
            own = rows[places.file[rows] == f]
            side = places.sides[f]
            corners = places.coords[own] - places.coords[own].min(0)
            found[own] = np.column_stack(
                [corners[:, 0] + left, corners[:, 1], np.full(len(own), side)]
            )
            left += float(corners[:, 0].max()) + 3 * side
    return [[float(v) for v in place] for place in found]


def _described(shown: Features, i: int) -> list[str]:
    """Return the first features of a row, without the category that is its label."""
    found = (shown.feature(i, column) for column in range(len(shown.columns)))
    label = shown.label(i)
    return [text for text in found if text and text.partition("=")[2] != label][:COLUMNS]


def _assemble(data: dict[str, Any], runtime: Runtime | None) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("capnets.pages", "static"), autoescape=True, undefined=StrictUndefined
    )
    code, style = script(), _static("page.css")
    rights = "; connect-src 'self'" if runtime is None else " blob: 'wasm-unsafe-eval'"
    policy = (
        f"default-src 'none'; script-src {_digest(code)}{rights}; "
        f"style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page.html.j2").render(
        data=data,
        policy=policy,
        # A closing tag inside the JSON would end its script element.
        json=json.dumps(data).replace("<", "\\u003c"),
        code=code,
        style=style,
        runtime=None
        if runtime is None
        else {
            "name": NAME,
            "script": _base64(gzip.compress(runtime.script, mtime=0)),
            "wasm": _base64(gzip.compress(runtime.wasm, mtime=0)),
        },
    )


def script() -> str:
    """Return all modules of the page as one script.

    A page that is opened from a file cannot import modules, so their import and export keywords are
    removed and they are joined.
    """
    lines = []
    for name in MODULES:
        lines.append(f"// {name}")
        for line in _static(name).splitlines():
            if not line.startswith("import "):
                lines.append(line.removeprefix("export "))
    return "\n".join(["", *lines, ""])


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{_base64(hashlib.sha256(text.encode()).digest())}'"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
