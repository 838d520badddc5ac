"""Save, restore and move the state of streams."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from capnets.errors import InputError
from capnets.export.engine import Engine
from capnets.export.session import no_memory
from capnets.files import write_bytes
from capnets.sets import Array

__all__ = ["StreamState", "as_state"]

FORMAT = 2
#: Number of axes and dtype kind of each array.
ARRAYS = {"memory": (2, "f"), "prediction": (2, "f"), "instances": (1, "i")}


@dataclass(frozen=True, eq=False)
class StreamState:
    """The state of one or several streams.

    Parameters
    ----------
    fingerprint
        Fingerprint of the network; only the same network can continue the streams.
    memory
        State of the network, streams x state.
    prediction
        Baseline plus all added values so far, streams x outputs.
    instances
        Number of instances that each stream has read.
    """

    fingerprint: str
    memory: Array
    prediction: Array
    instances: Array

    def __len__(self) -> int:
        return len(self.memory)

    @classmethod
    def of(cls, engine: Engine, *, streams: int) -> Self:
        """Make the state of new streams, before the first instance."""
        return cls(
            engine.fingerprint,
            no_memory(engine.session("step"), streams),
            np.tile(engine.baseline, (streams, 1)),
            np.zeros(streams, dtype=np.int64),
        )

    def take(self, which: Array) -> Self:
        """Copy the state of some of the streams."""
        return type(self)(self.fingerprint, *(getattr(self, name)[which] for name in ARRAYS))

    def put(self, which: Array, other: StreamState) -> None:
        """Replace the state of some of the streams."""
        for name in ARRAYS:
            getattr(self, name)[which] = getattr(other, name)

    def beside(self, other: StreamState) -> Self:
        """Concatenate the states of these streams and of others."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ARRAYS)
        return type(self)(self.fingerprint, *map(np.concatenate, pairs))

    def save(self, path: str | Path) -> None:
        """Write the state to a file (safetensors), atomically."""
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        about = {"format": FORMAT, "fingerprint": self.fingerprint, "digest": self._digest()}
        write_bytes(path, save(tensors, {"capnets.stream": json.dumps(about)}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote; raise an error for anything else."""
        path = Path(path)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"there is no file {path} with the state of a stream") from None
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from error
        try:
            tensors, about = load(data), json.loads(_metadata(data)["capnets.stream"])
            newer = about["format"] > FORMAT
            state = cls(about["fingerprint"], **tensors)
            digest = about.get("digest")  # format 1 had none
            intact = digest == state._digest() if digest else about["format"] < FORMAT
        except (SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path} holds no saved state of a stream: {error}") from error
        if newer:
            raise InputError(f"{path} was written by a newer capnets; upgrade this one")
        if not intact:
            raise InputError(f"{path} is damaged: its contents do not match its digest")
        if fault := _fault(state):
            raise InputError(f"{path} holds no valid state of a stream: {fault}")
        return state

    def _digest(self) -> str:
        digest = hashlib.sha256(str(self.fingerprint).encode())
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name))
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
        return digest.hexdigest()

    def check(self, other: StreamState) -> None:
        """Refuse a state of another network or of another number of streams."""
        if other.fingerprint != self.fingerprint:
            raise InputError(
                f"this state belongs to another network ({other.fingerprint[:12]}…, not "
                f"{self.fingerprint[:12]}…); a stream needs the network that started it"
            )
        for name in ARRAYS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine.shape != theirs.shape:
                raise InputError(
                    f"this state has {name} of shape {theirs.shape}, but {mine.shape} is needed: "
                    f"it is the state of {len(other)} streams, not of {len(self)}"
                )
            if mine.dtype != theirs.dtype:
                raise InputError(
                    f"this state has {name} of type {theirs.dtype}, but {mine.dtype} is needed"
                )


def as_state(given: Any) -> StreamState:
    """Return a state that was given as an object or as the path of a file."""
    if isinstance(given, str | Path):
        return StreamState.load(given)
    if not isinstance(given, StreamState):
        raise InputError(f"a state is a StreamState or the path of a saved one, not {given!r}")
    if fault := _fault(given):
        raise InputError(f"this is no valid state of a stream: {fault}")
    return given


def _fault(state: StreamState) -> str | None:
    """Describe what is wrong with a state of any network; None if it is valid."""
    fingerprint: Any = state.fingerprint
    if not isinstance(fingerprint, str):
        return "it does not name its network"
    arrays = {name: getattr(state, name) for name in ARRAYS}
    for name, array in arrays.items():
        axes, kind = ARRAYS[name]
        if not isinstance(array, np.ndarray) or (array.ndim, array.dtype.kind) != (axes, kind):
            whole = "whole " if kind == "i" else ""
            return f"{name} is no array of {whole}numbers with {axes} axes"
        if not np.isfinite(array).all():
            return f"{name} holds NaN or infinite numbers"
    if len({len(array) for array in arrays.values()}) > 1:
        return "its arrays are of different numbers of streams"
    if (state.instances < 0).any():
        return "numbers of instances are negative"
    return None


def _metadata(data: bytes) -> dict[str, str]:
    # safetensors reads metadata only from open files; the header is its length followed by JSON.
    length = int.from_bytes(data[:8], "little")
    metadata: dict[str, str] = json.loads(data[8 : 8 + length])["__metadata__"]
    return metadata
