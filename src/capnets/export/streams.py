"""Process many streams in one batch."""

from __future__ import annotations

from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.export.engine import ROWS, Engine, streaming_engine
from capnets.export.session import as_instances, check_answer, check_finite
from capnets.export.source import Source
from capnets.export.state import StreamState, as_state
from capnets.sets import Array

__all__ = ["Streams"]


class Streams:
    """Several growing sets, processed in batches.

    Streams are numbered from 0. The class is thread-safe: concurrent calls are serialized.

    Parameters
    ----------
    source
        As for `Stream`.
    count
        Number of streams, initially empty. More can be added later.
    state
        State to continue from, instead of a count; see `Stream`.

    Examples
    --------
    >>> from capnets.models import build
    >>> streams = Streams(build("c-gru", in_features=3, seed=0), count=100)
    >>> streams.push(np.ones((100, 3))).shape  # one instance for each
    (100,)
    >>> streams.push(np.ones((2, 5, 3)), which=[7, 42]).shape  # five instances for two of them
    (2, 5)
    >>> streams.instances[[0, 7]].tolist()
    [1, 6]
    >>> streams.add(2).tolist(), streams.instances[[0, 7, 100]].tolist()
    ([100, 101], [1, 6, 0])
    """

    def __init__(
        self,
        source: Source | Engine,
        *,
        count: int | None = None,
        state: StreamState | str | Path | None = None,
    ) -> None:
        if (count is None) == (state is None):
            raise InputError("Streams needs either a count or a state, not both")
        self.engine = streaming_engine(source)
        self._lock = RLock()
        self._state = self._new(count, state)

    def __len__(self) -> int:
        """Return the number of streams."""
        return len(self._state)

    @property
    def predictions(self) -> Array:
        """Prediction of each stream so far; one row per stream if there are several outputs."""
        with self._lock:
            every = self._state.prediction.copy()
        return every[:, 0] if self.engine.outputs == 1 else every

    @property
    def instances(self) -> Array:
        """Number of instances read by each stream."""
        with self._lock:
            return self._state.instances.copy()

    def state(self, which: Any = None) -> StreamState:
        """Return the state of all streams, or of the chosen ones."""
        with self._lock:
            return self._state.take(self._chosen(which))

    def restore(self, state: StreamState | str | Path, *, which: Any = None) -> None:
        """Restore the state of all streams, or of the chosen ones."""
        given = as_state(state)
        with self._lock:
            chosen = self._chosen(which)
            self._state.take(chosen).check(given)
            self._state.put(chosen, given)

    def reset(self, which: Any = None) -> None:
        """Reset all streams, or the chosen ones."""
        with self._lock:
            chosen = self._chosen(which)
            self._state.put(chosen, StreamState.of(self.engine, streams=len(chosen)))

    def add(
        self, count: int | None = None, *, state: StreamState | str | Path | None = None
    ) -> Array:
        """Add one or `count` streams, or those of a state; return their numbers."""
        new = self._new(1 if count is None and state is None else count, state)
        with self._lock:
            before = len(self)
            self._state = self._state.beside(new)
            return np.arange(before, len(self))

    def drop(self, which: Any) -> None:
        """Remove the chosen streams; the following ones are renumbered without gaps."""
        with self._lock:
            kept = np.delete(np.arange(len(self)), self._chosen(which))
            self._state = self._state.take(kept)

    def _new(self, count: int | None, state: StreamState | str | Path | None) -> StreamState:
        if state is None:
            if not isinstance(count, int | np.integer) or count < 0:
                raise InputError(f"count is a whole number of at least 0, not {count!r}")
            return StreamState.of(self.engine, streams=int(count))
        if count is not None:
            raise InputError("give either a count or a state, and not both")
        given = as_state(state)
        StreamState.of(self.engine, streams=len(given)).check(given)
        return given.take(np.arange(len(given)))  # a copy, not the caller's arrays

    def push(self, instances: Any, *, which: Any = None) -> Array:
        """Read one or more instances for every stream, or for the chosen ones.

        Parameters
        ----------
        instances
            Streams x features (one instance each), or streams x size x features.
        which
            Numbers of the streams that the rows belong to, each once. None means all streams; an
            empty list does nothing.

        Returns
        -------
        values
            Added values, one per stream or streams x size, with a last axis of outputs if the
            network has several.
        """
        x = as_instances(instances)
        with self._lock:
            chosen = self._chosen(which)
            self._check(x, chosen)
            values = self._read(x, chosen) if len(chosen) else self._nothing(x)
        return values[..., 0] if self.engine.outputs == 1 else values

    def _check(self, x: Array, chosen: Array) -> None:
        features = self.engine.feature_shape
        before = x.ndim - len(features)  # streams, or streams x instances
        if len(chosen) or x.size:
            if before not in (1, 2):
                each = " x ".join(map(str, features))
                raise InputError(
                    f"instances have shape {x.shape}, but the first axis must be streams: "
                    f"give {len(chosen)} x {each} (one instance each) or "
                    f"{len(chosen)} x size x {each}"
                )
            self.engine.check_shape(x.shape[before:])
        if len(x) != len(chosen):
            raise InputError(
                f"instances for {len(x)} streams were pushed, "
                f"but {len(chosen)} streams are to be advanced"
            )
        if len(chosen) and not x.size:
            raise InputError("nothing was pushed: give at least one instance for every stream")
        check_finite(x)

    def _nothing(self, x: Array) -> Array:
        """Return the values of no streams; an empty list has no feature axis."""
        before = x.shape[: x.ndim - len(self.engine.feature_shape)] or (0,)
        return np.zeros((*before, self.engine.outputs), dtype=np.float32)

    def _read(self, x: Array, chosen: Array) -> Array:
        one = x.ndim == 1 + len(self.engine.feature_shape)
        every = x[:, None] if one else x
        values, memory = self._advance(every, self._state.memory[chosen])
        check_answer(x, values, memory)
        self._state.memory[chosen] = memory
        self._state.prediction[chosen] += values.sum(axis=1, dtype=np.float64)
        self._state.instances[chosen] += every.shape[1]
        return values[:, 0] if one else values

    def _advance(self, x: Array, memory: Array) -> tuple[Array, Array]:
        count, size = x.shape[:2]
        one = size == 1
        session = self.engine.session("step" if one else "chunk")  # a step has fewer operators
        read, state = (port.name for port in session.get_inputs())
        values = np.empty((count, size, self.engine.outputs), dtype=np.float32)
        many = min(count, ROWS)
        long = ROWS // many
        for a in range(0, count, many):
            some = slice(a, a + many)
            for b in range(0, size, long):
                next_ones = x[some, 0] if one else x[some, b : b + long]
                found, memory[some] = session.run(None, {read: next_ones, state: memory[some]})
                values[some, b : b + long] = found[:, None] if one else found
        return values, memory

    def _chosen(self, which: Any) -> Array:
        if which is None:
            return np.arange(len(self))
        chosen = np.atleast_1d(np.asarray(which))
        if not chosen.size:
            return np.arange(0)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise InputError(f"choose streams by their numbers, not by {which!r}")
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise InputError(f"streams are numbered from 0 to {len(self) - 1}, not {which!r}")
        if len(np.unique(chosen)) < len(chosen):
            raise InputError("a stream is chosen twice; push its instances as one row instead")
        return chosen
