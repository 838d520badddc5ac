"""Record keys of the training sets, so that an evaluation can leave these sets out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from capnets.errors import InputError
from capnets.files.tensors import Damaged, read_tensors, write_tensors
from capnets.sets import Array, Sets
from capnets.sets.hashing import instance_keys

__all__ = ["are_seen", "read_keys", "set_keys", "write_keys"]

FILE = "training_sets.safetensors"

Keys = NDArray[np.int64]


def set_keys(sets: Sets) -> Keys:
    """Return a 64-bit key per set, computed from the features of its instances in any order."""
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(instance_keys(sets))])
    keys: Keys = (running[sets.offsets[1:]] - running[sets.offsets[:-1]]).view(np.int64)
    return keys


def write_keys(folder: Path, keys: Keys) -> None:
    """Write the keys of the training sets into a run folder."""
    write_tensors(folder / FILE, {"keys": torch.from_numpy(np.unique(keys))}, {})


def read_keys(folder: Path) -> Keys | None:
    """Read the keys of the training sets; None for runs of earlier versions, which have none."""
    try:
        return read_tensors(folder / FILE)[0]["keys"].numpy()
    except FileNotFoundError:
        return None
    except (OSError, KeyError, Damaged) as error:
        raise InputError(
            f"{folder / FILE} is damaged ({error}): without it, evaluation cannot leave out "
            "training sets; restore it or train again"
        ) from error


def are_seen(sets: Sets, keys: Keys | None) -> Array:
    """Return for every set whether it is among the training sets with these keys."""
    if keys is None:
        return np.zeros(len(sets), dtype=bool)
    return np.isin(set_keys(sets), keys)
