"""Many streams side by side, advanced in one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.export.engine import ROWS, Engine, Source, streaming_engine
from capnets.export.session import as_instances, check_finite, check_shape
from capnets.export.state import StreamState
from capnets.sets import Array

__all__ = ["Streams"]


class Streams:
    """Sets that grow side by side.

    Parameters
    ----------
    source
        As for `Stream`.
    count
        How many streams.

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
    """

    def __init__(self, source: Source | Engine, *, count: int) -> None:
        if count < 1:
            raise InputError(f"count must be at least 1, not {count}")
        self.engine = streaming_engine(source)
        self._state = StreamState.of(self.engine, streams=count)

    def __len__(self) -> int:
        """How many streams there are."""
        return len(self._state)

    @property
    def predictions(self) -> Array:
        """What each stream is worth so far; a row where the network has several outputs."""
        every = self._state.prediction.copy()
        return every[:, 0] if self.engine.outputs == 1 else every

    @property
    def instances(self) -> Array:
        """How many instances each stream has read."""
        return self._state.instances.copy()

    def state(self, which: Any = None) -> StreamState:
        """What all streams remember, or the chosen ones."""
        return self._state.take(self._chosen(which))

    def restore(self, state: StreamState, *, which: Any = None) -> None:
        """Let all streams, or the chosen ones, go on from a state."""
        chosen = self._chosen(which)
        self._state.take(chosen).check(state)
        self._state.put(chosen, state)

    def push(self, instances: Any, *, which: Any = None) -> Array:
        """Read one or more instances for every stream, or for the chosen ones.

        Parameters
        ----------
        instances
            Streams x features (one instance each), or streams x size x features.
        which
            Numbers of the streams that the rows belong to, each once; None: all of them.

        Returns
        -------
        values
            Added values: one per stream, or streams x size; with a last axis of outputs where the
            network has several.
        """
        x, chosen = as_instances(instances), self._chosen(which)
        one = x.ndim == 1 + len(self.engine.feature_shape)
        every = x[:, None] if one else x
        check_shape(every.shape[2:], self.engine.feature_shape)
        if len(every) != len(chosen):
            raise InputError(
                f"instances for {len(every)} streams were pushed, "
                f"but {len(chosen)} streams are to be advanced"
            )
        if not every.size:
            raise InputError("nothing was pushed: give at least one instance for every stream")
        check_finite(every)
        values, memory = self._advance(every, self._state.memory[chosen])
        self._state.memory[chosen] = memory
        self._state.prediction[chosen] += values.sum(axis=1, dtype=np.float64)
        self._state.instances[chosen] += every.shape[1]
        values = values[:, 0] if one else values
        return values[..., 0] if self.engine.outputs == 1 else values

    def _advance(self, x: Array, memory: Array) -> tuple[Array, Array]:
        session = self.engine.session("chunk")
        count, size = x.shape[:2]
        values = np.empty((count, size, self.engine.outputs), dtype=np.float32)
        many = min(count, ROWS)
        long = ROWS // many
        for a in range(0, count, many):
            for b in range(0, size, long):
                part = (slice(a, a + many), slice(b, b + long))
                values[part], memory[part[0]] = session.run(
                    None, {"instances": x[part], "state": memory[part[0]]}
                )
        return values, memory

    def _chosen(self, which: Any) -> Array:
        if which is None:
            return np.arange(len(self))
        chosen = np.atleast_1d(np.asarray(which))
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
            raise InputError(f"streams are chosen by their numbers, not by {which!r}")
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise InputError(f"streams are numbered from 0 to {len(self) - 1}, not {which!r}")
        if len(np.unique(chosen)) < len(chosen):
            raise InputError("a stream is chosen twice; push its instances as one row instead")
        return chosen
