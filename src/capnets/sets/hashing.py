"""Hash instances by content, for random orders that do not depend on row order.

A random order drawn by position would change whenever rows are added above a set. Each instance
therefore gets a 64-bit key computed from its features and from the other instances of its set. The
key depends neither on the order of the rows nor on other sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capnets.sets.mapped import is_streamed, release
from capnets.sets.ragged import owners_of

if TYPE_CHECKING:
    from capnets.sets import Sets

__all__ = ["instance_keys", "splitmix64"]

Numbers = NDArray[np.uint64]

#: Numbers that are hashed at once.
CHUNK = 1 << 20


def instance_keys(sets: Sets) -> Numbers:
    """Return a 64-bit key per instance, in the order of `sets.index`.

    Duplicate instances of a set get distinct keys, because their order is arbitrary.
    """
    rows, place = np.unique(sets.index, return_inverse=True)
    numbers = _row_numbers(sets, rows)[place]
    owner = owners_of(sets.sizes)
    numbers = splitmix64(numbers + splitmix64(_occurrence(numbers, owner)))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)])
    whole = running[sets.offsets[1:]] - running[sets.offsets[:-1]]
    return splitmix64(numbers + splitmix64(whole)[owner])


def splitmix64(numbers: Numbers) -> Numbers:
    """Apply the SplitMix64 finalizer (Steele et al., 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _row_numbers(sets: Sets, rows: NDArray[np.int64]) -> Numbers:
    """Return a key per row: the sum of its splitmix64 feature bits times odd numbers."""
    width = int(np.prod(sets.instances.shape[1:]))
    odd = splitmix64(np.arange(1, width + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.empty(len(rows), np.uint64)
    step = max(1, CHUNK // max(1, width))
    streamed = is_streamed(sets.instances)
    for start in range(0, len(rows), step):
        features = sets.instances[rows[start : start + step]].reshape(-1, width)
        # Adding 0 turns -0.0 into 0.0, so that equal features hash equally.
        bits = (features.astype(np.float32) + np.float32(0)).view(np.uint32)
        found[start : start + step] = (splitmix64(bits.astype(np.uint64)) * odd).sum(
            1, dtype=np.uint64
        )
        if streamed:
            release(sets.instances)
    return found


def _occurrence(numbers: Numbers, owner: NDArray[np.int64]) -> Numbers:
    """Count earlier occurrences of the same key in the same set."""
    order = np.lexsort((numbers, owner))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(numbers[order]) != 0) | (np.diff(owner[order]) != 0)
    began = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    count = np.empty(len(order), np.uint64)
    count[order] = np.arange(len(order)) - began
    return count
