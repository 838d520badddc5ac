"""Read sets from an .npz file: X (instances x features), offsets, y; or read it as a table."""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from capnets.errors import InputError
from capnets.ingest.set_data import SetData
from capnets.ingest.source import ROWS, Source, reading
from capnets.memory import check_memory
from capnets.sets import Array, Sets, validation
from capnets.sets.ragged import owners_of

__all__ = ["DAMAGE", "NpzTable", "read_arrays", "read_npz"]

#: Errors that numpy and zipfile raise for damaged archives.
DAMAGE = (
    EOFError, RuntimeError, TypeError, KeyError, IndexError, AttributeError, struct.error,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile, tokenize.TokenError,
)  # fmt: skip
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: str | Path, *, labels: bool = True, learning: bool | None = None) -> SetData:
    """Read `X`, `offsets` (set k is X[offsets[k]:offsets[k + 1]]) and, if wanted, `y` or `Y`.

    Text labels become the numbers of their classes. `feature_names` and `ids` are read if present.
    Nothing in the file is executed. `learning` as in `Sets.from_arrays`.
    """
    path = Path(path)
    wanted = ("X", "offsets", "ids", "feature_names")
    arrays = read_arrays(path, (*wanted, "y", "Y") if labels else wanted)
    y = arrays.get("y", arrays.get("Y"))
    try:
        sets = _sets(arrays, y, labels=labels)
        sets.check_finite()
        if labels if learning is None else learning:
            validation.check_digits(sets, [arrays["X"]])
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if y is None or y.dtype.kind != "U":
        return SetData(sets)
    return SetData(sets, classes=tuple(np.unique(y).tolist()))


class NpzTable(Source):
    """The arrays of an .npz file as the columns of a table.

    `set` holds `ids`, or the number of the set. The features have their names, or `X[0]`, `X[1]`, …
    Every other array is a column of its own name (with two axes, one per entry: `y[0]`, `y[1]`): it
    has one entry per instance, or one per set that is repeated in its rows.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        arrays = read_arrays(path)
        try:
            sets = _sets(arrays, None, labels=False)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error
        if sets.instances.ndim != 2:
            raise InputError(
                f"{path}: X holds instances of shape {sets.feature_shape}, which are no columns; "
                "leave out the options that name columns"
            )
        self.name, self.rows = str(path), len(sets.index)
        self._owner = owners_of(sets.sizes)
        ids = np.arange(len(sets)) if sets.ids is None else np.asarray(sets.ids)
        self._columns = {"set": ids}
        if arrays["X"].dtype.kind == "b":  # numbers, as without a table
            arrays["X"] = sets.instances
        for name, array in arrays.items():
            if name in ("offsets", "ids", "feature_names") or not array.ndim:
                continue
            if len(array) in (self.rows, len(sets)) and array.ndim <= 2:
                names = sets.feature_names if name == "X" else None
                self._columns |= _columns(name, array, names)
        self.schema = pa.schema([(n, _arrow(c[:0]).type) for n, c in self._columns.items()])

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        for start in range(0, len(self._owner), ROWS):
            owner = self._owner[start : start + ROWS]
            whole = len(self._owner)
            found = [
                c[start : start + ROWS] if len(c) == whole else c[owner]
                for c in map(self._columns.__getitem__, columns)
            ]
            yield pa.record_batch([_arrow(c) for c in found], names=list(columns))


def _columns(name: str, array: Array, names: Sequence[str] | None) -> dict[str, Array]:
    if array.ndim == 1:
        return {name: array}
    names = names or [f"{name}[{k}]" for k in range(array.shape[1])]
    return dict(zip(names, array.T, strict=True))


def _arrow(array: Array) -> Any:
    import pyarrow as pa

    if array.dtype.kind == "S":
        array = np.char.decode(array)
    return pa.array(array, from_pandas=array.dtype.kind == "f")


def _sets(arrays: dict[str, Array], y: Array | None, *, labels: bool) -> Sets:
    """Return sets from the arrays of a file, which may hold missing values."""
    missing = [n for n in ("X", "offsets") if n not in arrays]
    if labels and y is None:
        missing.append("y")
    if missing:
        raise InputError(
            f"the file has no {' and no '.join(missing)}; X (instances x features), "
            "offsets (sets + 1) and y (one label per set) are needed"
        )
    X, names = arrays["X"], arrays.get("feature_names")
    if X.dtype.kind not in "fiub" or X.ndim < 2:
        raise InputError(
            f"X holds {X.dtype} of shape {X.shape} where numbers belong, instances x features"
        )
    for name in ("ids", "feature_names"):
        if name in arrays and (arrays[name].ndim != 1 or arrays[name].dtype.kind not in "USfiub"):
            raise InputError(
                f"{name} holds {arrays[name].dtype} of shape {arrays[name].shape}; "
                "expected a list of names"
            )
    sets = Sets(
        validation.numbers(X, "X"),
        np.arange(len(X)),
        arrays["offsets"],
        None if y is None else _numbers(y),
        ids=arrays.get("ids"),
        feature_names=None if names is None else tuple(map(str, names)),
    )
    if (sets.sizes == 0).any():
        raise InputError(f"set {int(np.argmin(sets.sizes))} has no instances; remove it")
    return sets


def read_arrays(path: Path, names: tuple[str, ...] | None = None) -> dict[str, Array]:
    """Read the named arrays of an .npz file that exist, or all, without running anything in it."""
    with reading(str(path), "npz", also=DAMAGE), zipfile.ZipFile(path) as archive:
        entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        return {
            name: _array(archive, entries[name]) for name in names or entries if name in entries
        }


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """Read one array after comparing its claimed size with what the archive holds."""
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        if version not in HEADERS:
            raise InputError(f"{archive.filename}: {entry.filename} has the format {version}")
        shape, _, dtype = HEADERS[version](file)
        claimed, stored = math.prod(shape) * dtype.itemsize, entry.file_size - file.tell()
    what = f"{archive.filename}: {entry.filename} of shape {shape} and type {dtype}"
    if not dtype.hasobject and (claimed != stored or min(shape, default=0) < 0):
        raise InputError(f"{what} needs {claimed:,} bytes, but {stored:,} are stored: damaged")
    check_memory(claimed, what=what, advice="split the file, or use Parquet, which is streamed")
    with archive.open(entry) as file:
        array: Array = npy.read_array(file, allow_pickle=False)
    return array


def _numbers(y: Array) -> Array:
    if y.dtype.kind == "U":
        if y.ndim != 1:
            raise InputError(f"y holds text of shape {y.shape}; text names one class per set")
        y = np.unique(y, return_inverse=True)[1]
    if y.dtype.kind not in "fiub":
        raise InputError(f"y holds {y.dtype}; expected numbers, or text that names classes")
    return validation.labels(y, "y")
