"""Process a stream of instances and return each added value immediately."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from capnets.errors import InputError
from capnets.export.engine import ROWS, Engine, streaming_engine
from capnets.export.session import as_instances, check_answer, check_finite
from capnets.export.source import Source
from capnets.export.state import StreamState, as_state
from capnets.sets import Array

__all__ = ["Stream"]

#: Maximum number of input shapes with a bound graph; one more clears all bindings.
SHAPES = 8


class Stream:
    """A growing set: push instances, get their added values and the prediction so far.

    Memory does not grow with the number of instances. Streams are thread-safe: concurrent pushes
    are serialized.

    Parameters
    ----------
    source
        A capacity network, a run (or its folder), a fitted estimator, a folder that `export` wrote,
        or an `Engine`, which several streams may share.
    state
        State to continue from: a `StreamState` (see the property `state`) or the path of a saved
        one. By default the stream is empty.

    Examples
    --------
    >>> from capnets.models import build
    >>> stream = Stream(build("c-gru", in_features=3, seed=0))
    >>> stream.push(np.ones((2, 3))).shape
    (2,)
    >>> len(stream), stream.push([1.0, 2.0, 3.0]).shape, len(stream)
    (2, (1,), 3)
    """

    def __init__(
        self, source: Source | Engine, *, state: StreamState | str | Path | None = None
    ) -> None:
        self.engine = streaming_engine(source)
        nothing = StreamState.of(self.engine, streams=1)
        # Two buffers, because a graph must not overwrite the state that it reads.
        self._memory = (nothing.memory.copy(), nothing.memory.copy())
        self._readers: dict[tuple[int, ...], _Reader] = {}
        self._lock = Lock()
        if state is None:
            self._begin(nothing)
        else:
            given = as_state(state)
            nothing.check(given)
            self._begin(given)

    def _begin(self, state: StreamState) -> None:
        self._now = 0
        self._memory[0][...] = state.memory
        # A list of floats: adding arrays with one element takes 6 microseconds.
        self._total: list[float] = state.prediction[0].tolist()
        self._count = int(state.instances[0])

    def __len__(self) -> int:
        """Return the number of instances read so far."""
        return self._count

    @property
    def prediction(self) -> Any:
        """Prediction for the instances read so far.

        One number, or an array if the network has several outputs. Classifiers give logits.
        """
        with self._lock:
            return self._total[0] if len(self._total) == 1 else np.array(self._total)

    @property
    def state(self) -> StreamState:
        """A copy of the current state; later pushes do not change it."""
        with self._lock:
            return self._state()

    def reset(self) -> None:
        """Forget all instances."""
        with self._lock:
            self._begin(StreamState.of(self.engine, streams=1))

    def copy(self) -> Self:
        """Return an independent copy of the stream that shares its engine."""
        return type(self)(self.engine, state=self.state)

    def _state(self) -> StreamState:
        return StreamState(
            self.engine.fingerprint,
            self._memory[self._now].copy(),
            np.array([self._total]),
            np.array([self._count]),
        )

    def push(self, instances: Any) -> Array:
        """Read instances and return their added values.

        If any instance is invalid or makes the network overflow, an error is raised and the stream
        is unchanged.

        Parameters
        ----------
        instances
            Instances x features, or one instance.

        Returns
        -------
        values
            One added value per instance; one row per instance if the network has several outputs.
        """
        x = as_instances(instances)
        with self._lock:
            reader = self._readers.get(x.shape)
            if reader is not None:
                return self._read(x, reader)
            rows = x[None] if x.ndim == len(self.engine.feature_shape) else x
            self.engine.check_shape(rows.shape[1:])
            if not len(rows):
                raise InputError("nothing was pushed: give at least one instance")
            if len(rows) > ROWS:
                return self._read_pieces(rows)
            return self._read(x, self._reader(x.shape, rows.shape))

    def _reader(self, given: tuple[int, ...], shape: tuple[int, ...]) -> _Reader:
        if given not in self._readers:
            if len(self._readers) == SHAPES:
                self._readers.clear()
            self._readers[given] = _Reader(self.engine, self._memory, shape)
        return self._readers[given]

    def _read(self, x: Array, reader: _Reader, *, first: int = 0) -> Array:
        reader.instances[...] = x
        if not _sound(reader.features):
            check_finite(x)
        reader.session.run_with_iobinding(reader.bindings[self._now])
        sums, memory = reader.sums(), reader.memories[self._now]
        if not (isfinite(sum(sums)) and _sound(memory)):
            check_answer(x, reader.values, memory, first=first)
        self._now = 1 - self._now
        self._count += len(reader.values)
        for k, more in enumerate(sums):
            self._total[k] += more
        return reader.answer.copy()

    def _read_pieces(self, rows: Array) -> Array:
        check_finite(rows)
        before, values = self._state(), []
        try:
            for start in range(0, len(rows), ROWS):
                piece = rows[start : start + ROWS]
                reader = self._reader(piece.shape, piece.shape)
                values.append(self._read(piece, reader, first=start))
        except BaseException:
            self._begin(before)
            raise
        return np.concatenate(values)


class _Reader:
    """A graph bound to fixed buffers, so that pushes allocate no memory.

    Parameters
    ----------
    engine
        Engine of the graph.
    memory
        Two buffers for the state of the stream.
    shape
        Input shape, instances x features.
    """

    def __init__(self, engine: Engine, memory: tuple[Array, Array], shape: tuple[int, ...]) -> None:
        from onnxruntime import OrtValue

        self.instances = np.zeros(shape, dtype=np.float32)
        self.values = np.zeros((len(self.instances), engine.outputs), dtype=np.float32)
        one = len(self.instances) == 1
        self.session = engine.session("step" if one else "chunk")
        # Views of the same memory, made once because making them is slow.
        self.answer = self.values[:, 0] if engine.outputs == 1 else self.values
        self.features = self.instances.reshape(-1)
        self.memories = [memory[1 - now].reshape(-1) for now in (0, 1)]
        read, written = (a if one else a[None] for a in (self.instances, self.values))
        self.bindings = []
        for now in (0, 1):  # each binding reads the buffer that the other writes
            binding = self.session.io_binding()
            for port, array in zip(self.session.get_inputs(), (read, memory[now]), strict=True):
                binding.bind_ortvalue_input(port.name, OrtValue.ortvalue_from_numpy(array))
            arrays = written, memory[1 - now]
            for port, array in zip(self.session.get_outputs(), arrays, strict=True):
                binding.bind_ortvalue_output(port.name, OrtValue.ortvalue_from_numpy(array))
            self.bindings.append(binding)

    def sums(self) -> list[float]:
        """Return the sums of the added values, one per output."""
        if len(self.values) == 1:
            row: list[float] = self.values.tolist()[0]
            return row
        return [sum(column) for column in self.values.T.tolist()]


def _sound(numbers: Array) -> bool:
    """Return quickly whether all numbers are finite; may be False if some are very large."""
    return isfinite(np.vdot(numbers, numbers))
