"""Read instance tables that lie in mapped files, block by block.

The pages of a mapped file stay resident after they were read. Reading neighbouring rows and
releasing the pages afterwards keeps the memory of a process independent of the size of the table,
and reads the disk in order. Small files stay resident.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator

import numpy as np

from capnets.sets.ragged import Array

__all__ = ["LARGE", "blocks", "is_streamed", "prefetch", "release"]

#: Size in bytes above which a mapped file is streamed instead of kept resident.
LARGE = 2**28
#: Numbers in a block.
BLOCK = 2**22


def is_streamed(values: Array) -> bool:
    """Return whether an array is a mapped file that is too large to stay resident."""
    file = _file(values)
    return file is not None and len(file) > LARGE


def blocks(values: Array, *, numbers: int = BLOCK) -> Iterator[tuple[int, Array]]:
    """Yield neighbouring rows of a table and the number of the first of them.

    >>> [(start, len(part)) for start, part in blocks(np.zeros((5, 2)), numbers=4)]
    [(0, 2), (2, 2), (4, 1)]
    """
    rows = max(1, numbers // max(1, math.prod(values.shape[1:])))
    streamed = is_streamed(values)
    for start in range(0, len(values), rows):
        yield start, values[start : start + rows]
        if streamed:
            release(values)


def prefetch(values: Array, starts: Array, stops: Array) -> None:
    """Read ranges of rows ahead, each in the order of the file."""
    file = _file(values)
    if file is None or not hasattr(mmap, "MADV_WILLNEED"):
        return
    first, width = _address(values) - _address(np.frombuffer(file, np.uint8)), values.strides[0]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        begin = (first + start * width) // mmap.PAGESIZE * mmap.PAGESIZE
        length = min(first + stop * width, len(file)) - begin
        if length > 0:
            file.madvise(mmap.MADV_WILLNEED, begin, length)


def release(values: Array) -> None:
    """Release the resident pages of a mapped file; they are read again when needed."""
    file = _file(values)
    if file is not None and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def _file(values: Array) -> mmap.mmap | None:
    """Return the read-only file behind an array, if there is one.

    A copy-on-write map is none: releasing it would lose what was written.
    """
    if isinstance(values, np.memmap) and values.mode == "r":
        file: mmap.mmap | None = values._mmap  # type: ignore[attr-defined]
        return file
    return None


def _address(values: Array) -> int:
    return int(values.__array_interface__["data"][0])
