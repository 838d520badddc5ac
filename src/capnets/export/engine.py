"""Run networks in ONNX Runtime: the results of torch with less overhead."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError, SizeWarning
from capnets.export.session import check_shape, no_memory, open_graph
from capnets.export.source import Source, read_graphs, trained_sizes
from capnets.files.manifest import MANIFEST
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.batch import Batches
from capnets.sets.covariates import check_same
from capnets.sets.orders import Orders
from capnets.sets.ragged import cut_by_size, scatter_padded
from capnets.sets.validation import other_sizes

__all__ = ["ROWS", "Engine", "streaming_engine"]

STREAMED = (
    "only capacity networks can be streamed: the others need the whole set at once. "
    "Train one, such as c-gru"
)
KNOWN = "networks with covariates cannot be streamed yet; predict whole sets"
#: Instances per call. Smaller batches have more overhead, larger ones overflow the CPU caches.
#: Chosen from 1,000 to 32,000 by timing all networks on sets of 10, 100 and 10,000 instances.
ROWS = 2048


class Engine:
    """A network in ONNX Runtime, in float32.

    Engines are thread-safe.

    Parameters
    ----------
    source
        A network, a run (or its folder), a fitted estimator, or a folder that `export` wrote. The
        latter needs neither the network's code nor the package `onnx`.
    threads
        Number of threads of ONNX Runtime.

    Attributes
    ----------
    fingerprint
        A digest of the network.
    verified
        Whether the graphs match their digests; False for exports of earlier versions, which have
        none.
    additive
        Whether predictions are sums of added values.
    streams
        Whether a set can be read piece by piece.
    outputs
        Number of labels per set.
    baseline
        Prediction for the empty set, one number per output. With covariates: its constant part.
    covariates
        Number of covariates; sets then need theirs.
    feature_shape
        Shape of one instance; words are variable sizes.
    smallest
        Minimum of the variable sizes.
    trained_sizes
        Sizes of the smallest and the largest training set, if they are known; others are warned of.

    Examples
    --------
    >>> from capnets.models import build
    >>> engine = Engine(build("c-gru", in_features=3, seed=0))
    >>> sets = Sets.from_arrays([np.ones((5, 3)), np.ones((2, 3))])
    >>> engine.predict(sets).shape, engine.added_values(sets).shape
    ((2,), (7,))
    """

    def __init__(self, source: Source, *, threads: int = 1) -> None:
        self._graphs = read_graphs(source)
        is_folder = isinstance(source, str | Path) and (Path(source) / "sets.onnx").exists()
        self.verified = not is_folder or (Path(str(source)) / MANIFEST).exists()
        self.trained_sizes = trained_sizes(source)
        self._sessions: dict[str, Any] = {}
        self._threads = threads
        about = _about(self.session("sets"))
        self.fingerprint = str(about.get("capnets.fingerprint"))
        self.smallest = int(about.get("capnets.smallest", 1))
        # Exports of earlier versions do not record these; infer them from the graphs.
        streams = "chunk" in self._graphs
        additive = streams or "predict" not in self._graphs
        self.streams = _flag(about, "capnets.streams", default=streams)
        self.additive = _flag(about, "capnets.additive", default=additive)
        instances, *others = self.session("sets").get_inputs()
        self.covariates = next((int(p.shape[1]) for p in others if p.name == "covariates"), 0)
        prediction, _ = self.session("sets").get_outputs()
        self.feature_shape: tuple[int | str, ...] = tuple(instances.shape[2:])
        self.outputs = int(prediction.shape[1])
        self.baseline: Array = np.array(
            json.loads(about.get("capnets.baseline", "null")) or [0.0] * self.outputs
        )

    def session(self, name: str) -> Any:
        """Return the ONNX Runtime session of a graph, opened on first use."""
        if name not in self._sessions:
            session = open_graph(self._graphs[name], name=name, threads=self._threads)
            if self._sessions and _about(session).get("capnets.fingerprint") != self.fingerprint:
                raise InputError(
                    f"the graph {name} belongs to another network than the other graphs"
                )
            self._sessions[name] = session
        return self._sessions[name]

    def predict(self, sets: Sets | Sequence[Any], *, orders: int | None = None) -> Array:
        """Predict every set; one row per set if the network has several outputs.

        Parameters
        ----------
        sets
            Sets, or a list with one array (instances x features) per set.
        orders
            Average over this many random orders, as estimators do (the card records the number).
            None and 1 keep the given order.
        """
        sets = self._check(sets)
        if orders is not None:
            return _averaging(orders).mean(sets, self.predict).astype(np.float32)
        out = np.empty((len(sets), self.outputs), dtype=np.float32)
        name = "predict" if "predict" in self._graphs else "sets"
        for chosen, prediction, _ in self._answers(name, sets):
            out[chosen] = prediction
        return out[:, 0] if self.outputs == 1 else out

    def added_values(self, sets: Sets | Sequence[Any], *, orders: int | None = None) -> Array:
        """Compute the added value of every instance, in the order of `sets.index`.

        With `orders`: the mean over this many random orders.
        """
        sets = self._check(sets)
        if orders is not None:
            mean = _averaging(orders).mean(sets, self.added_values, per_instance=True)
            return mean.astype(np.float32)
        out = np.empty((len(sets.index), self.outputs), dtype=np.float32)
        for chosen, _, values in self._answers("sets", sets):
            scatter_padded(out, values, sets.offsets, chosen)
        return out[:, 0] if self.outputs == 1 else out

    def infer(self, sets: Sets | Sequence[Any]) -> tuple[Array, Array]:
        """Compute predictions and added values in one pass, in the given order.

        Returns
        -------
        predictions
            Sets x outputs.
        values
            Instances x outputs, in the order of `sets.index`.
        """
        sets = self._check(sets)
        predictions = np.empty((len(sets), self.outputs), dtype=np.float32)
        values = np.empty((len(sets.index), self.outputs), dtype=np.float32)
        for chosen, prediction, added in self._answers("sets", sets):
            predictions[chosen] = prediction
            scatter_padded(values, added, sets.offsets, chosen)
        return predictions, values

    def infer_padded(self, x: Array, mask: Array) -> tuple[Array, Array]:
        """Compute predictions and added values of padded sets in a single call of the graph.

        `infer` also accepts sets of any number and size, at a higher cost per call.

        Parameters
        ----------
        x
            Sets x longest x features, finite numbers in float32.
        mask
            Sets x longest, True at instances; padding comes last.

        Returns
        -------
        predictions
            Sets x outputs.
        values
            Sets x longest x outputs, arbitrary at padding.
        """
        self._check_sizes(mask.sum(axis=1))
        found = self.session("sets").run(None, {"instances": x, "mask": mask})
        return found[0], found[-1]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse instances of a shape that the network does not read."""
        check_shape(shape, self.feature_shape, smallest=self.smallest)

    def _answers(self, name: str, sets: Sets) -> Iterator[tuple[Array, Array, Array]]:
        """Yield set numbers, predictions and added values (if the graph has them)."""
        known = sets.covariates
        source = Batches(replace(sets, covariates=None, covariate_names=None))
        for chosen in cut_by_size(sets.sizes, ROWS):
            if self.streams and sets.sizes[chosen[0]] > ROWS:
                values = self._read_long(sets, int(chosen[0]))[None]
                yield chosen, self.baseline + values.sum(axis=1, dtype=np.float64), values
                continue
            batch = source.take(chosen)
            x = batch.x.numpy()
            _check_finite(x, sets)
            mask = np.ones(x.shape[:2], dtype=bool) if batch.mask is None else batch.mask.numpy()
            if x.shape[1] == 0 and known is not None:  # a graph needs a row, if only of padding
                x = np.zeros((len(x), 1, *x.shape[2:]), dtype=np.float32)
                mask = np.zeros((len(x), 1), dtype=bool)
            if x.shape[1]:
                given = {"instances": x, "mask": mask}
                if known is not None:
                    given["covariates"] = np.asarray(known[chosen], dtype=np.float32)
                found = self.session(name).run(None, given)
            else:  # only empty sets
                nothing = np.tile(self.baseline, (len(x), 1))
                found = [nothing, np.zeros((len(x), 0, self.outputs))]
            yield chosen, found[0], found[-1]

    def _read_long(self, sets: Sets, k: int) -> Array:
        """Compute the added values of a large set in chunks, which bounds memory."""
        session, rows = self.session("chunk"), sets.rows(k)
        out = np.empty((len(rows), self.outputs), dtype=np.float32)
        state = no_memory(session, 1)
        for start in range(0, len(rows), ROWS):
            piece = np.asarray(sets.instances[rows[start : start + ROWS]], dtype=np.float32)
            _check_finite(piece, sets)
            values, state = session.run(None, {"instances": piece[None], "state": state})
            out[start : start + ROWS] = values[0]
        return out

    def _check(self, sets: Sets | Sequence[Any]) -> Sets:
        sets = sets if isinstance(sets, Sets) else Sets.from_arrays(sets)
        self.check_shape(sets.feature_shape)
        check_same(sets, self.covariates, None, who="this network")
        self._check_sizes(sets.sizes)
        if text := other_sizes(sets.sizes, self.trained_sizes):
            warnings.warn(text, SizeWarning, stacklevel=3)
        return sets

    def _check_sizes(self, sizes: Array) -> None:
        if not self.additive and not sizes.all():
            raise InputError(
                f"set {int(np.argmin(sizes))} has no instances, and this network cannot say "
                "what it is worth; remove empty sets, or use a capacity network (for it: 0)"
            )


def streaming_engine(source: Source | Engine) -> Engine:
    """Return an engine whose network reads one instance at a time."""
    # A network that cannot stream may have no graph either: say what matters here.
    if isinstance(source, SetModel) and not source.steps:
        raise InputError(STREAMED)
    engine = source if isinstance(source, Engine) else Engine(source)
    if not engine.streams:
        raise InputError(KNOWN if engine.covariates else STREAMED)
    return engine


def _about(session: Any) -> dict[str, str]:
    about: dict[str, str] = session.get_modelmeta().custom_metadata_map
    return about


def _flag(about: dict[str, str], key: str, *, default: bool) -> bool:
    return {"true": True, "false": False}.get(about.get(key, ""), default)


def _averaging(orders: Any) -> Orders:
    if not isinstance(orders, int | np.integer) or orders < 1:
        raise InputError(f"orders is a whole number of at least 1, or None, not {orders!r}")
    return Orders.averaging(int(orders))


def _check_finite(x: Array, sets: Sets) -> None:
    if not isfinite(np.vdot(x, x)):
        sets.check_finite()  # names the place; large numbers are valid
