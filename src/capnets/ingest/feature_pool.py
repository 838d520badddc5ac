"""Convert files of features once into one mapped table of instances.

The pool only grows. Every file is appended and recorded in one line; what a killed process wrote
after the last line is cut off, so that converting again continues there. A file that changed on
disk is appended anew.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.files.locks import lock_folder
from capnets.ingest.feature_files import FeatureFile, open_features
from capnets.ingest.set_data import Part
from capnets.progress import TitledProgress
from capnets.sets import Array
from capnets.sets.mapped import blocks
from capnets.sets.precision import BFLOAT16

__all__ = ["FeaturePool"]

"""Called with a description, the amount done and the total."""

LINES, INSTANCES, COORDS = "files.jsonl", "instances.bin", "coords.bin"


class FeaturePool:
    """A folder with the features of many files.

    Parameters
    ----------
    folder
        The folder; it is created by `add`.
    placed
        Whether coordinates are features, too.
    """

    def __init__(self, folder: Path, *, placed: bool = False) -> None:
        self.folder, self.placed = folder, placed

    def parts(self) -> dict[str, Part]:
        """Return the converted files by path."""
        return {part.name: part for part in self._lines()}

    def add(
        self, files: Sequence[Path], dtype: np.dtype[Any], *, progress: TitledProgress | None = None
    ) -> list[Part]:
        """Convert the files that are not in the pool; return the rows of all."""
        busy = f"another process is converting features into {self.folder}"
        with lock_folder(self.folder, busy=busy):
            known = self.parts()
            new = [file for file in files if not _same(known.get(str(file)), file)]
            self._verify([known[str(file)] for file in files if file not in new])
            for done, file in enumerate(new):
                if progress is not None:
                    progress("converting features", done, len(new))
                known[str(file)] = self._append(file, dtype)
            if new and progress is not None:
                progress("converting features", len(new), len(new))
        return [known[str(file)] for file in files]

    def tables(self) -> tuple[Array, Array]:
        """Return instances and coordinates, memory-mapped."""
        first, *_ = lines = self._lines()
        rows = lines[-1].stop
        return (
            self._mapped(INSTANCES, _dtype(first.dtype), (rows, first.width)),
            self._mapped(COORDS, np.dtype(np.float32), (rows, 2)),
        )

    def _mapped(self, name: str, dtype: np.dtype[Any], shape: tuple[int, int]) -> Array:
        return np.memmap(self.folder / name, dtype=dtype, mode="r", shape=shape)

    def _append(self, file: Path, dtype: np.dtype[Any]) -> Part:
        lines = self._lines()
        start = lines[-1].stop if lines else 0
        self.folder.mkdir(parents=True, exist_ok=True)
        with open_features(file, placed=self.placed) as found:
            rows, width = found.shape
            self._check(lines, found, dtype)
            try:
                crc = self._write(INSTANCES, start * width * dtype.itemsize, found.blocks(dtype))
                coords = np.full((rows, 2), np.nan) if found.coords is None else found.coords
                self._write(COORDS, start * 8, [coords.astype(np.float32)])
                about = file.stat()
                part = Part(
                    str(file), about.st_size, about.st_mtime_ns, start, rows, width, dtype.name,
                    crc, found.side, "" if found.coords is None else found.unit,
                )  # fmt: skip
                self._write(LINES, self._end, [np.frombuffer(_line(part), np.uint8)])
            except OSError as error:
                raise InputError(
                    f"cannot write to {self.folder}: {error.strerror or error}; files that were "
                    "converted stay. Free some space or choose another folder."
                ) from error
        return part

    def _check(self, lines: list[Part], found: FeatureFile, dtype: np.dtype[Any]) -> None:
        for part in lines[:1]:
            if (part.width, part.dtype) != (found.shape[1], dtype.name):
                raise InputError(
                    f"{found.path} has {found.shape[1]} features ({dtype.name}), but {self.folder} "
                    f"holds {part.width} ({part.dtype}); choose another folder for the pool"
                )

    def _write(self, name: str, at: int, parts: Any) -> int:
        """Write arrays at a place, cut off what follows, and return a checksum."""
        crc = 0
        path = self.folder / name
        path.touch()
        with path.open("r+b") as file:
            file.truncate(at)
            file.seek(at)
            for part in parts:
                data = np.ascontiguousarray(part).view(np.uint8).data
                crc = zlib.crc32(data, crc)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return crc

    @property
    def _end(self) -> int:
        return sum(len(_line(part)) for part in self._lines())

    def _lines(self) -> list[Part]:
        """Return the recorded files, up to a line that was not written completely."""
        found: list[Part] = []
        try:
            text = (self.folder / LINES).read_bytes()
        except FileNotFoundError:
            return found
        for line in text.splitlines(keepends=True):
            try:
                part = Part.from_dict(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError):
                break
            if _line(part) != line:
                break
            found.append(part)
        return found

    def _verify(self, parts: Sequence[Part]) -> None:
        """Compare the rows of files with their checksums."""
        if not parts:
            return
        try:
            instances, _ = self.tables()
        except ValueError as error:  # shorter than its records
            raise self._damaged() from error
        for part in parts:
            crc = 0
            for _, rows in blocks(instances[part.start : part.stop]):
                crc = zlib.crc32(np.ascontiguousarray(rows).view(np.uint8).data, crc)
            if crc != part.crc:
                raise self._damaged()

    def _damaged(self) -> InputError:
        return InputError(f"{self.folder} is damaged; remove it, and features are converted again")


def _same(part: Part | None, file: Path) -> bool:
    about = file.stat()
    return part is not None and (part.size, part.changed) == (about.st_size, about.st_mtime_ns)


def _line(part: Part) -> bytes:
    return (json.dumps(part.to_dict()) + "\n").encode()


def _dtype(name: str) -> np.dtype[Any]:
    return BFLOAT16 if name == BFLOAT16.name else np.dtype(name)
