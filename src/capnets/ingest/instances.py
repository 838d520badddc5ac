"""Collect the instances of a table in memory, or in a file that is memory-mapped at the end."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from capnets.errors import InputError
from capnets.sets import Array, Sets, storage

__all__ = ["FilePool", "MemoryPool"]

ROWS = 65536


class MemoryPool:
    """Collect blocks of instances in memory.

    Parameters
    ----------
    width
        Number of features.
    """

    def __init__(self, width: int) -> None:
        self.rows = 0
        self.sums, self.counts = np.zeros(width), np.zeros(width, dtype=np.int64)
        self.blocks: list[Array] = []

    def add(self, block: Array) -> None:
        """Append rows; NaN is a missing value."""
        self.rows += len(block)
        known = ~np.isnan(block)
        self.counts += known.sum(axis=0)
        self.sums += np.where(known, block, 0.0).sum(axis=0, dtype=np.float64)
        self._keep(block)

    def means(self) -> Array:
        """Return the mean of each feature over its known values (0 if there are none)."""
        means: Array = self.sums / np.maximum(self.counts, 1)
        return means

    def fill(self, values: Array) -> None:
        """Replace missing values."""
        for block in self.blocks:
            np.copyto(block, values, where=np.isnan(block))

    def put(self, column: int, values: Array) -> None:
        """Replace some columns, from a number of the first one on."""
        row, width = 0, values.shape[1]
        for block in self.blocks:
            block[:, column : column + width] = values[row : row + len(block)]
            row += len(block)

    def finish(
        self,
        arrays: dict[str, Array],
        feature_names: tuple[str, ...],
        covariate_names: tuple[str, ...] | None = None,
    ) -> Sets:
        """Return the sets over all rows."""
        about: dict[str, Any] = {**arrays, "covariate_names": covariate_names}
        return Sets(np.concatenate(self.blocks), feature_names=feature_names, **about)

    def close(self) -> None:
        """Release the blocks."""
        self.blocks = []

    def _keep(self, block: Array) -> None:
        self.blocks.append(block)


class FilePool(MemoryPool):
    """Append instances to a .npy file in the folder of the sets.

    Earlier sets in the folder stay until `finish` replaces them in one step.
    """

    def __init__(self, width: int, folder: Path) -> None:
        super().__init__(width)
        self.width, self.folder = width, folder
        self.path = folder / f".instances-{secrets.token_hex(4)}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("w+b")
        except OSError as error:
            raise self._cannot_write(error) from error
        self._header()

    def _header(self) -> None:
        # numpy pads headers, so that this one can be overwritten when the number of rows is known.
        about = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, self.width)}
        self.file.seek(0)
        npy.write_array_header_1_0(self.file, about)

    def _keep(self, block: Array) -> None:
        try:
            self.file.write(np.ascontiguousarray(block).data)
        except OSError as error:
            raise self._cannot_write(error) from error

    def fill(self, values: Array) -> None:
        """Replace missing values, a block at a time."""
        for _, block in self._mapped():
            np.copyto(block, values, where=np.isnan(block))

    def put(self, column: int, values: Array) -> None:
        """Replace some columns, a block at a time."""
        for start, block in self._mapped():
            part = values[start : start + len(block)]
            block[:, column : column + values.shape[1]] = part

    def _mapped(self) -> Iterator[tuple[int, Array]]:
        """Yield the first row and the rows of every block; mapping anew bounds the memory."""
        self._complete()
        for start in range(0, self.rows, ROWS):
            yield start, npy.open_memmap(self.path, mode="r+")[start : start + ROWS]

    def finish(
        self,
        arrays: dict[str, Array],
        feature_names: tuple[str, ...],
        covariate_names: tuple[str, ...] | None = None,
    ) -> Sets:
        """Write the other arrays beside the instances and memory-map all of them."""
        self._complete()
        storage.write(
            self.folder, arrays, feature_names, covariate_names, ready={"instances": self.path}
        )
        return Sets.load(self.folder)

    def close(self) -> None:
        """Remove the file, unless it became part of the sets."""
        self.file.close()
        self.path.unlink(missing_ok=True)

    def _complete(self) -> None:
        try:
            self._header()
            self.file.flush()
            self.file.seek(0, 2)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(
            f"cannot write to {self.folder}: {error.strerror or error}; "
            "what was there before is unchanged. Free some space or choose another folder."
        )
