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
        # A list of numbers: adding arrays of one number beside ONNX Runtime costs 6 microseconds.
        self._total: list[float] = begin.prediction[0].tolist()
        self._count = int(begin.instances[0])
        self._step: _Step | None = None

    def __len__(self) -> int:
        """How many instances have been read."""
        return self._count

    @property
    def prediction(self) -> Any:
        """What all instances so far are worth together; one number, or a row of them."""
        return self._total[0] if len(self._total) == 1 else np.array(self._total)

    @property
    def state(self) -> StreamState:
        """What is remembered now; the stream goes on without changing it."""
        return StreamState(
            self.engine.fingerprint,
            self._memory[self._now].copy(),
            np.array([self._total]),
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
        if self._step is not None and x.shape in self._step.shapes:
            check_finite(x)
            return self._push_one(x, self._step)
        rows = x[None] if x.ndim == len(self.engine.feature_shape) else x
        check_shape(rows.shape[1:], self.engine.feature_shape)
        if not len(rows):
            raise InputError("nothing was pushed: give at least one instance")
        check_finite(x)
        if len(rows) > 1:
            return self._push_many(rows)
        self._step = _Step(self.engine, self._memory, rows.shape)
        return self._push_one(rows, self._step)

    def _push_one(self, x: Array, step: _Step) -> Array:
        step.instance[...] = x
        step.session.run_with_iobinding(step.bindings[self._now])
        self._now = 1 - self._now
        self._count += 1
        for k, value in enumerate(step.value[0].tolist()):
            self._total[k] += value
        return (step.value[:, 0] if len(self._total) == 1 else step.value).copy()

    def _push_many(self, x: Array) -> Array:
        session = self.engine.session("chunk")
        out = np.empty((len(x), len(self._total)), dtype=np.float32)
        memory = self._memory[self._now]
        for start in range(0, len(x), ROWS):
            piece = x[None, start : start + ROWS]
            values, memory = session.run(None, {"instances": piece, "state": memory})
            out[start : start + ROWS] = values[0]
        self._memory[self._now][...] = memory
        self._count += len(x)
        self._total = (out.sum(axis=0, dtype=np.float64) + self._total).tolist()
        return out[:, 0] if len(self._total) == 1 else out


class _Step:
    """The step graph bound to memory that never moves: nothing is allocated for an instance."""

    def __init__(self, engine: Engine, memory: tuple[Array, Array], shape: tuple[int, ...]) -> None:
        from onnxruntime import OrtValue

        self.shapes = (shape, shape[1:])
        self.session = engine.session("step")
        self.instance = np.zeros(shape, dtype=np.float32)
        self.value = np.zeros((1, engine.outputs), dtype=np.float32)
        self.bindings = []
        for now in (0, 1):  # what one binding writes, the other reads
            binding = self.session.io_binding()
            for name, array in (("instance", self.instance), ("state", memory[now])):
                binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
            for name, array in (("value", self.value), ("next_state", memory[1 - now])):
                binding.bind_ortvalue_output(name, OrtValue.ortvalue_from_numpy(array))
            self.bindings.append(binding)
