"""One served network: metadata, inference, explanations and selections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain import explain, select
from capnets.export.engine import Engine
from capnets.runs import Run
from capnets.serve.batching import Batcher
from capnets.serve.bodies import EmbedBody, ExplainBody, SelectBody
from capnets.serve.limits import Limits, RequestError
from capnets.serve.tensors import Given, tensor
from capnets.sets import Array
from capnets.sets.validation import other_sizes
from capnets.tasks.sentences import encode_sentences, sentence_model, split_sentences

__all__ = ["Network", "network_names", "open_networks"]


class Network:
    """A network that the service offers.

    Parameters
    ----------
    name
        Its name in addresses.
    folder
        A run, or what `export` wrote; the latter offers no explanations by removal.
    limits
        Limits on the work of one request.
    observe
        Called with the name and the number of requests of every batch.
    """

    def __init__(
        self, name: str, folder: Path, *, limits: Limits, observe: Callable[[str, int], None]
    ) -> None:
        self.name = name
        self.engine = Engine(folder)
        if self.engine.covariates:
            raise InputError(
                f"{folder}: networks with covariates are not served yet, because a request cannot "
                "hold them; use `capnets predict`, or `Engine` on what `capnets export` wrote"
            )
        # Answers carry this warning: a log would repeat it for every request.
        self._sizes, self.engine.trained_sizes = self.engine.trained_sizes, None
        self.run = Run(folder) if (folder / "config.json").is_file() else None
        self.sentence_model = None if self.run is None else sentence_model(self.run.config.data)
        self.batcher = Batcher(self.engine, observe=lambda count: observe(name, count))
        self._limits = limits
        self.features = tuple(
            self.engine.smallest if isinstance(size, str) else size
            for size in self.engine.feature_shape
        )

    def metadata(self) -> dict[str, Any]:
        """Return the description that the KServe v2 protocol asks for."""
        engine = self.engine
        features = [-1 if isinstance(size, str) else size for size in engine.feature_shape]
        return {
            "name": self.name,
            "versions": ["1"],
            "platform": "onnxruntime_onnx",
            "inputs": [
                {"name": "instances", "datatype": "FP32", "shape": [-1, -1, *features]},
                {"name": "mask", "datatype": "BOOL", "shape": [-1, -1]},
            ],
            "outputs": [
                {"name": "prediction", "datatype": "FP32", "shape": [-1, engine.outputs]},
                {"name": "added_values", "datatype": "FP32", "shape": [-1, -1, engine.outputs]},
            ],
            "parameters": {
                "additive": engine.additive,
                "streams": engine.streams,
                "sentences": self.sentence_model is not None,
                "baseline": engine.baseline.tolist(),
                "fingerprint": engine.fingerprint,
            },
        }

    async def infer(self, given: Given, request_id: str | None) -> dict[str, Any]:
        """Return predictions and added values as tensors."""
        if not self.engine.streams:  # time and memory grow with the square of the size
            self._check_work(_squares(given.sizes))
        prediction, values = await self.batcher.infer(given)
        answer: dict[str, Any] = {
            "model_name": self.name,
            "model_version": "1",
            "outputs": [
                tensor("prediction", prediction),
                tensor("added_values", given.pad(values)),
            ],
        }
        if warning := other_sizes(given.sizes, self._sizes):
            answer["parameters"] = {"warning": warning}
        return answer if request_id is None else {**answer, "id": request_id}

    def explain(self, body: ExplainBody, given: Given) -> dict[str, Any]:
        """Return what each instance adds, by one of the methods of `capnets.explain`."""
        run = self._whole_run(given)
        if (body.orders or 1) > self._limits.orders:
            raise RequestError(422, f"too many orders: the limit is {self._limits.orders}")
        self._check_work(_explanation_work(run, body, given.sizes))
        found = explain(
            run, given.to_sets(), method=body.method, orders=body.orders, seed=body.seed,
            output=body.output,
        )  # fmt: skip
        per_instance = {"values": found.values, "errors": found.errors, "spreads": found.spreads}
        return {
            "model_name": self.name,
            "warning": other_sizes(given.sizes, self._sizes),
            "method": found.method,
            "exact": found.exact,
            "baseline": float(found.baselines[0]),
            "predictions": _finite(found.predictions).tolist(),
            **{
                name: [own.tolist() for own in np.split(_finite(array), found.offsets[1:-1])]
                for name, array in per_instance.items()
                if array is not None
            },
        }

    def select(self, body: SelectBody, given: Given) -> dict[str, Any]:
        """Return the k instances of each set that have the highest value together."""
        run = self._whole_run(given)
        steps = np.minimum(body.k, given.sizes.astype(np.float64))
        self._check_work(float((steps**2 * given.sizes).sum()))
        found = select(run, given.to_sets(), k=body.k, method=body.method, output=body.output)
        _finite(found.values)
        return {
            "model_name": self.name,
            "warning": other_sizes(given.sizes, self._sizes),
            "method": body.method,
            "positions": found.positions,
            "gains": found.gains,
            "values": found.values.tolist(),
        }

    def embed(self, body: EmbedBody) -> dict[str, Any]:
        """Return the sentences of a text, and their vectors as the network reads them."""
        if self.sentence_model is None:
            raise InputError("this network does not read sentences; send its features instead")
        sentences = split_sentences(body.text) if body.split else [body.text.strip()]
        if not any(sentences):
            raise InputError("there is no sentence in the text")
        if len(sentences) > self._limits.sentences:
            raise RequestError(
                413,
                f"{len(sentences)} sentences are too many: the limit is {self._limits.sentences}",
            )
        return {
            "model_name": self.name,
            "sentences": sentences,
            "vectors": encode_sentences(sentences, model=self.sentence_model),
        }

    def _whole_run(self, given: Given) -> Run:
        if self.run is None:
            raise InputError("this network is an export without weights; serve its run instead")
        self.engine.check_shape(given.rows.shape[1:])
        return self.run

    def _check_work(self, work: float) -> None:
        if work > self._limits.work:
            raise RequestError(
                422,
                f"this needs about {work:.2g} instances read, and the limit is "
                f"{self._limits.work:,}; use smaller or fewer sets, or fewer orders",
            )


def open_networks(
    folders: Iterable[str | Path], *, limits: Limits, observe: Callable[[str, int], None]
) -> dict[str, Network]:
    """Open runs or exports; a network is named after its folder, equal names are numbered."""
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise InputError("give at least one run to serve")
    return {
        name: Network(name, path, limits=limits, observe=observe)
        for name, path in zip(network_names(paths), paths, strict=True)
    }


def network_names(folders: Iterable[Path]) -> list[str]:
    """Return a name for every folder that can stand in an address.

    >>> network_names([Path("a/run"), Path("b/run"), Path("my run!")])
    ['run', 'run-2', 'my-run']
    """
    names: list[str] = []
    for folder in folders:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.") or "model"
        name, count = plain, 1
        while name in names:
            count += 1
            name = f"{plain}-{count}"
        names.append(name)
    return names


def _explanation_work(run: Run, body: ExplainBody, sizes: Array) -> float:
    """Estimate how many instances the network reads for an explanation."""
    model, orders = run.model, body.orders or 1
    whole = _squares(sizes) if model.rereads else float(sizes.sum())
    if body.method == "added":
        return orders * whole
    if body.orders is None and not model.closed_form:
        return float((sizes * 2.0 ** np.minimum(sizes, 64)).sum())
    return orders * (_squares(sizes) if model.ordered else whole)


def _squares(sizes: Array) -> float:
    return float((sizes.astype(np.float64) ** 2).sum())


def _finite(array: Array) -> Array:
    if not np.isfinite(array).all():
        raise InputError(
            "numbers of the network become too large: scale large features down or remove them"
        )
    return array
