"""What streams remember: a small record that can be saved, restored and moved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from capnets.atomic import write_bytes
from capnets.errors import InputError
from capnets.export.engine import Engine
from capnets.sets import Array

__all__ = ["StreamState"]

FORMAT = 1
ARRAYS = ("memory", "prediction", "instances")


@dataclass(frozen=True, eq=False)
class StreamState:
    """What one stream or several remember.

    Parameters
    ----------
    fingerprint
        Of the network that read the instances; no other can go on from here.
    memory
        Streams x state: what the network's cell remembers.
    prediction
        Streams x outputs: the sums of all added values so far.
    instances
        How many instances each stream has read.
    """

    fingerprint: str
    memory: Array
    prediction: Array
    instances: Array

    def __len__(self) -> int:
        return len(self.memory)

    @classmethod
    def of(cls, engine: Engine, *, streams: int) -> Self:
        """The state of new streams, before the first instance."""
        features = engine.session("step").get_inputs()[1].shape[1]
        return cls(
            engine.fingerprint,
            np.zeros((streams, features), dtype=np.float32),
            np.zeros((streams, engine.outputs)),
            np.zeros(streams, dtype=np.int64),
        )

    def take(self, which: Array) -> Self:
        """A copy of what some of the streams remember."""
        return type(self)(self.fingerprint, *(getattr(self, name)[which] for name in ARRAYS))

    def put(self, which: Array, other: StreamState) -> None:
        """Replace what some of the streams remember."""
        for name in ARRAYS:
            getattr(self, name)[which] = getattr(other, name)

    def save(self, path: str | Path) -> None:
        """Write the state to a file (safetensors), atomically."""
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        about = {"format": FORMAT, "fingerprint": self.fingerprint}
        write_bytes(path, save(tensors, {"capnets.stream": json.dumps(about)}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        try:
            data = path.read_bytes()
            tensors = load(data)
            about = json.loads(_metadata(data)["capnets.stream"])
            if about["format"] > FORMAT:
                raise InputError(f"{path} was written by a newer capnets; upgrade this one")
            return cls(about["fingerprint"], **tensors)
        except (OSError, SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise InputError(f"{path} holds no saved state of a stream: {error}") from error

    def check(self, other: StreamState) -> None:
        """Refuse a state of another network or of another number of streams."""
        if other.fingerprint != self.fingerprint:
            raise InputError(
                f"this state belongs to another network ({other.fingerprint[:12]}…, not "
                f"{self.fingerprint[:12]}…); a stream can only go on with the network that began it"
            )
        for name in ARRAYS:
            mine, theirs = getattr(self, name).shape, getattr(other, name).shape
            if mine != theirs:
                raise InputError(
                    f"this state has {name} of shape {theirs}, but {mine} is needed: "
                    f"it is the state of {len(other)} streams, not of {len(self)}"
                )


def _metadata(data: bytes) -> dict[str, str]:
    # safetensors' own reader of metadata wants an open file; the header is JSON behind its length.
    length = int.from_bytes(data[:8], "little")
    metadata: dict[str, str] = json.loads(data[8 : 8 + length])["__metadata__"]
    return metadata
