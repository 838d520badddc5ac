"""Random numbers that instances have by what they are.

An order drawn by position would change with the rows above in a file, and so would a mean over
random orders. Here an instance of a set has a number that depends on its features and on what
else is in the set, and on nothing else: neither on the order of rows, nor on the sets beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capnets.sets.ragged import owners_of

if TYPE_CHECKING:
    from capnets.sets import Sets

__all__ = ["instance_numbers", "mixed"]

Numbers = NDArray[np.uint64]

#: Rows of the pool that are looked at together.
CHUNK = 1 << 14


def instance_numbers(sets: Sets) -> Numbers:
    """One number per instance, as `sets.index` lists them, spread over all of 64 bits.

    Equal instances of a set have different numbers: which of them is which cannot matter.
    """
    rows, place = np.unique(sets.index, return_inverse=True)
    numbers = _row_numbers(sets, rows)[place]
    owner = owners_of(sets.sizes)
    numbers = mixed(numbers + mixed(_occurrence(numbers, owner)))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)])
    whole = running[sets.offsets[1:]] - running[sets.offsets[:-1]]
    return mixed(numbers + mixed(whole)[owner])


def mixed(numbers: Numbers) -> Numbers:
    """The finaliser of SplitMix64 (Steele et al., 2014): near numbers become far ones."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _row_numbers(sets: Sets, rows: NDArray[np.int64]) -> Numbers:
    """A number per row of the pool: its features, as bits, times odd numbers."""
    width = int(np.prod(sets.instances.shape[1:]))
    odd = mixed(np.arange(1, width + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), CHUNK):
        features = sets.instances[rows[start : start + CHUNK]].reshape(-1, width)
        # Adding 0 makes -0.0 what it equals.
        bits = (features.astype(np.float32) + np.float32(0)).view(np.uint32)
        found[start : start + CHUNK] = (mixed(bits.astype(np.uint64)) * odd).sum(1, dtype=np.uint64)
    return found


def _occurrence(numbers: Numbers, owner: NDArray[np.int64]) -> Numbers:
    """How often the same number came before in the same set."""
    order = np.lexsort((numbers, owner))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(numbers[order]) != 0) | (np.diff(owner[order]) != 0)
    began = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    count = np.empty(len(order), np.uint64)
    count[order] = np.arange(len(order)) - began
    return count
