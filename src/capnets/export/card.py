"""Make the model card of an export, for people and programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from capnets.export.compare import CASES, TOLERANCE
from capnets.export.networks import memory
from capnets.export.onnx import SMALLEST, fingerprint, instance_shape, ports, streams
from capnets.ingest.columns import Schema
from capnets.models import parameters
from capnets.models.base import SetModel
from capnets.records import Record
from capnets.runs import Run, versions

__all__ = ["Card"]

LINKS = {"logistic": "logistic", "softmax": "softmax"}

#: Preprocessing of the instances of a task. It is not part of the graphs.
EMBEDDED = {
    "none": "the pixels of an image of {source}, minus their mean over the training images and "
    "divided by their deviation",
    "minilm": "a sentence of {source} as the vector that all-MiniLM-L6-v2 gives it "
    "(`capnets.tasks.sentences.embed_sentences`)",
}
IMAGE = (
    "an image of {source} after the embedding `{embedding}`, which is learned from the training "
    "images (`capnets.tasks.embeddings.embed`)"
)


@dataclass(frozen=True)
class Card(Record):
    """Description of exported graphs, written as `card.json` and `README.md`.

    Parameters
    ----------
    network
        Its class, settings, number of parameters, fingerprint and stream state.
    instance
        Shape of one instance (words are variable sizes of at least `smallest`), feature names, and
        the preprocessing if it is known.
    prediction
        Number of labels per set, their names or classes, the link from logits to probabilities,
        the number of orders that the run averages over, and the unit of the network.
    graphs
        File, SHA-256 digest, input and output names of each graph.
    difference
        Largest difference between graphs and network, in units; the tolerance and the sets tried.
    training
        Recipe, seed and data of the run, and a digest of the description of the data.
    metrics
        Metrics of the run.
    versions
        Versions of the libraries that built the graphs.
    """

    network: dict[str, Any]
    instance: dict[str, Any]
    prediction: dict[str, Any]
    graphs: dict[str, dict[str, Any]]
    difference: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = 1

    @classmethod
    def of(
        cls, model: SetModel, graphs: dict[str, bytes], *, difference: float, run: Run | None
    ) -> Card:
        """Make the card of a network and its graphs."""
        data = run.config.data if run else {}
        schema = Schema.from_dict(data["schema"]) if data.get("schema") else None
        targets = list(schema.columns.target) if schema else []
        shape = instance_shape(model)
        return cls(
            network={
                "title": run.config.model.title if run else type(model).__name__,
                "type": type(model).__name__,
                "settings": run.config.model.to_dict() if run else None,
                "additive": model.additive,
                "ordered": model.ordered,
                "parameters": parameters(model),
                "fingerprint": fingerprint(model),
                "state": _state(model),
            },
            instance={
                "shape": list(shape),
                "smallest": SMALLEST if any(isinstance(size, str) for size in shape) else None,
                "names": list(schema.feature_names) if schema else None,
                "made": _made(data),
            },
            prediction={
                "outputs": model.outputs,
                "names": targets if len(targets) == model.outputs else None,
                "classes": (data.get("labels") or {}).get("classes"),
                "link": LINKS.get(run.config.loss) if run else None,
                "orders": data.get("orders") if model.ordered else None,
                "unit": model.unit.tolist(),
                "baseline": model.constant.tolist(),
                "covariates": _covariates(model, schema),
            },
            graphs={
                name: {
                    "file": f"{name}.onnx",
                    "sha256": hashlib.sha256(graph).hexdigest(),
                    **dict(zip(("inputs", "outputs"), ports(model, name), strict=True)),
                }
                for name, graph in graphs.items()
            },
            difference={
                "largest": difference,
                "allowed": TOLERANCE,
                "sets_and_sizes": [list(case) for case in CASES],
            },
            training=_training(run) if run else {},
            metrics=run.metrics if run and run.finished else {},
            versions=versions() | {n: version(n) for n in ("onnx", "onnxruntime")},
        )

    def page(self) -> str:
        """Return the card as a Markdown page.

        Names of columns and classes are escaped, because many Markdown viewers render HTML.
        """
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("capnets.export", "")
        pages = Environment(loader=loader, undefined=StrictUndefined, autoescape=True)
        example = [28 if isinstance(n, str) else n for n in self.instance["shape"]]
        text = pages.get_template("card.md.jinja").render(
            self.to_dict(), example=example, measures=list(_flat(self.metrics))
        )
        return text.strip() + "\n"


def _covariates(model: SetModel, schema: Schema | None) -> list[str]:
    names = () if schema is None else schema.covariate_names
    return list(names or (f"covariate {k}" for k in range(model.covariates)))


def _state(model: SetModel) -> dict[str, Any] | None:
    if not streams(model):
        return None
    features, dtype = memory(model)
    return {"features": features, "type": dtype.__name__}


def _made(data: dict[str, Any]) -> str | None:
    """Describe the features of an instance of a set task."""
    task = data.get("task") or {}
    if not {"source", "embedding"} <= set(task):
        return None
    words = EMBEDDED.get(task["embedding"], IMAGE)
    return words.format(source=task["source"], embedding=task["embedding"])


def _flat(metrics: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name} ")
        elif isinstance(value, int | float):
            yield f"{above}{name}", f"{value:.6g}"


def _training(run: Run) -> dict[str, Any]:
    config = run.config.to_dict()
    described = json.dumps(config["data"], sort_keys=True).encode()
    return {
        **{key: config[key] for key in ("data", "recipe", "seed", "loss", "priors", "versions")},
        "data_fingerprint": hashlib.sha256(described).hexdigest(),
    }
