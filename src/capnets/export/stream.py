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

#: Graphs stay bound for so many shapes of what is pushed; one more, and all are forgotten.
SHAPES = 8


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
        self._readers: dict[tuple[int, ...], _Reader] = {}

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
        reader = self._readers.get(x.shape)
        if reader is None:
            rows = x[None] if x.ndim == len(self.engine.feature_shape) else x
            check_shape(rows.shape[1:], self.engine.feature_shape)
            if not len(rows):
                raise InputError("nothing was pushed: give at least one instance")
            if len(rows) > ROWS:
                check_finite(x)
                pieces = range(0, len(rows), ROWS)
                return np.concatenate([self.push(rows[a : a + ROWS]) for a in pieces])
            if len(self._readers) == SHAPES:
                self._readers.clear()
            reader = self._readers[x.shape] = _Reader(self.engine, self._memory, rows.shape)
        check_finite(x)
        reader.instances[...] = x
        reader.session.run_with_iobinding(reader.bindings[self._now])
        self._now = 1 - self._now
        values = reader.values.copy()
        self._count += len(values)
        for k, column in enumerate(values.T.tolist()):
            self._total[k] += sum(column)
        return values[:, 0] if len(self._total) == 1 else values


class _Reader:
    """A graph bound to memory that never moves: nothing is allocated for the next instances.

    Parameters
    ----------
    engine
        Whose graph it is.
    memory
        Two buffers of what the stream remembers.
    shape
        Instances x features, as they will be pushed.
    """

    def __init__(self, engine: Engine, memory: tuple[Array, Array], shape: tuple[int, ...]) -> None:
        from onnxruntime import OrtValue

        self.instances = np.zeros(shape, dtype=np.float32)
        self.values = np.zeros((len(self.instances), engine.outputs), dtype=np.float32)
        one = len(self.instances) == 1
        self.session = engine.session("step" if one else "chunk")
        read, written = (a if one else a[None] for a in (self.instances, self.values))
        self.bindings = []
        for now in (0, 1):  # what one binding writes, the other reads
            binding = self.session.io_binding()
            for port, array in zip(self.session.get_inputs(), (read, memory[now]), strict=True):
                binding.bind_ortvalue_input(port.name, OrtValue.ortvalue_from_numpy(array))
            arrays = written, memory[1 - now]
            for port, array in zip(self.session.get_outputs(), arrays, strict=True):
                binding.bind_ortvalue_output(port.name, OrtValue.ortvalue_from_numpy(array))
            self.bindings.append(binding)
