"""Streams: instances come one after another, added values come back at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.export.engine import ROWS, Engine, Source, streaming_engine
from capnets.export.session import as_instances, check_finite, check_shape
from capnets.export.state import StreamState
from capnets.sets import Array

__all__ = ["Stream"]


class Stream:
    """A set that grows: push instances, read what they add and what they are worth together.

    What a stream remembers does not grow with what it has read.

    Parameters
    ----------
    source
        A capacity network, a run (or its folder), a folder that `export` wrote, or an `Engine`,
        which several streams may share.
    state
        Go on from here instead of from nothing (a `StreamState`, as the property `state` gives it).

    Examples
    --------
    >>> from capnets.models import build
    >>> stream = Stream(build("c-gru", in_features=3, seed=0))
    >>> stream.push(np.ones((2, 3))).shape
    (2,)
    >>> len(stream), stream.push([1.0, 2.0, 3.0]).shape, len(stream)
    (2, (1,), 3)
    """

    def __init__(self, source: Source | Engine, *, state: StreamState | None = None) -> None:
        self.engine = streaming_engine(source)
        begin = StreamState.of(self.engine, streams=1)
        if state is not None:
            begin.check(state)
            begin = state
        # Two buffers, because a graph must not write the state that it is still reading.
        self._memory = (begin.memory.copy(), begin.memory.copy())
        self._now = 0
        self._total = begin.prediction[0].copy()
        self._count = int(begin.instances[0])
        self._step: _Step | None = None

    def __len__(self) -> int:
        """How many instances have been read."""
        return self._count

    @property
    def prediction(self) -> Any:
        """What all instances so far are worth together; one number, or a row of them."""
        return float(self._total[0]) if len(self._total) == 1 else self._total.copy()

    @property
    def state(self) -> StreamState:
        """What is remembered now; the stream goes on without changing it."""
        return StreamState(
            self.engine.fingerprint,
            self._memory[self._now].copy(),
            self._total[None].copy(),
            np.array([self._count]),
        )

    def push(self, instances: Any) -> Array:
        """Read instances; what each of them adds to all before it.

        Wrong input is refused as a whole: the stream is then as it was before.

        Parameters
        ----------
        instances
            Instances x features, or one instance.

        Returns
        -------
        values
            One added value per instance; a row of them where the network has several outputs.
        """
        x = as_instances(instances)
        if x.ndim == len(self.engine.feature_shape):
            x = x[None]
        values = self._push_one(x) if len(x) == 1 else self._push_many(x)
        self._total += values.sum(axis=0, dtype=np.float64)
        self._count += len(values)
        return values[:, 0] if values.shape[1] == 1 else values

    def _push_one(self, x: Array) -> Array:
        step = self._step
        if step is None or step.instance.shape != x.shape:
            check_shape(x.shape[1:], self.engine.feature_shape)
            step = self._step = _Step(self.engine, self._memory, x.shape)
        check_finite(x)
        step.instance[...] = x
        step.session.run_with_iobinding(step.bindings[self._now])
        self._now = 1 - self._now
        return step.value.copy()

    def _push_many(self, x: Array) -> Array:
        check_shape(x.shape[1:], self.engine.feature_shape)
        if not len(x):
            raise InputError("nothing was pushed: give at least one instance")
        check_finite(x)
        session = self.engine.session("chunk")
        out = np.empty((len(x), len(self._total)), dtype=np.float32)
        memory = self._memory[self._now]
        for start in range(0, len(x), ROWS):
            piece = x[None, start : start + ROWS]
            values, memory = session.run(None, {"instances": piece, "state": memory})
            out[start : start + ROWS] = values[0]
        self._memory[self._now][...] = memory
        return out


class _Step:
    """The step graph bound to memory that never moves: nothing is allocated for an instance."""

    def __init__(self, engine: Engine, memory: tuple[Array, Array], shape: tuple[int, ...]) -> None:
        from onnxruntime import OrtValue

        self.session = engine.session("step")
        self.instance = np.zeros(shape, dtype=np.float32)
        self.value = np.zeros((1, engine.outputs), dtype=np.float32)
        self.bindings = []
        for now in (0, 1):  # what one binding writes, the other reads
            binding = self.session.io_binding()
            binding.bind_ortvalue_input("instance", OrtValue.ortvalue_from_numpy(self.instance))
            binding.bind_ortvalue_input("state", OrtValue.ortvalue_from_numpy(memory[now]))
            binding.bind_ortvalue_output("value", OrtValue.ortvalue_from_numpy(self.value))
            binding.bind_ortvalue_output(
                "next_state", OrtValue.ortvalue_from_numpy(memory[1 - now])
            )
            self.bindings.append(binding)
