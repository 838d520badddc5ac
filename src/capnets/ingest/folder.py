"""Read a folder with one file of features per set, or several, and a table of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Columns, Schema, missing_column
from capnets.ingest.feature_files import FORMATS, open_features
from capnets.ingest.feature_pool import FeaturePool
from capnets.ingest.read import SetReader, named_columns
from capnets.ingest.set_data import Part, SetData
from capnets.ingest.sources import Source, open_source
from capnets.progress import TitledProgress
from capnets.sets import Sets, offsets_of

__all__ = ["FeatureFolder", "read_folder"]

#: Columns that name files, if none is given.
FILE_COLUMNS = ("FILENAME", "SLIDE", "slide_id", "filename", "slide", "file")
#: Suffixes of images that tables write after the name of a slide.
IMAGES = (".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif", ".czi")
CONVERT = (
    "a .pt file is a pickle, which can run code, and is not read; in the environment that wrote "
    "it, convert it: numpy.save('slide.npy', torch.load('slide.pt', weights_only=True).numpy())"
)


@dataclass(frozen=True)
class FeatureFolder:
    """A folder of feature files and what is known about them.

    Parameters
    ----------
    folder
        The folder: HDF5 (TRIDENT, CLAM, STAMP), zarr, .npy or .npz files.
    table
        Labels, groups and splits: one row per file, or one row per set. None for sets to predict:
        every file is a set.
    files
        A second table that assigns files to the sets of the first, if `table` does not name them.
    pool
        Folder for the converted features; by default FOLDER.pool beside the folder, and
        FOLDER.placed.pool for features with coordinates.
    partial
        Whether to leave out files without a row, rows without a file, and empty files, which
        otherwise raise an error.
    progress
        Called with a description, the number of converted files and their total.
    """

    folder: str | Path
    table: Any = None
    files: Any = None
    pool: str | Path | None = None
    partial: bool = False
    progress: TitledProgress | None = None

    def __str__(self) -> str:
        return str(self.folder if self.table is None else self.table)

    def pool_folder(self, *, placed: bool = False) -> Path:
        """Return the folder of the converted features, with or without coordinates."""
        folder = Path(self.folder)
        suffix = ".placed.pool" if placed else ".pool"
        return Path(self.pool) if self.pool else folder.with_name(folder.name + suffix)


def read_folder(
    data: FeatureFolder,
    columns: Columns | Schema | None,
    *,
    labels: bool = True,
    classify: bool = False,
) -> SetData:
    """Read the sets of a folder; their features are memory-mapped.

    Everything is checked before anything is converted: names, widths, empty and damaged files.

    Parameters
    ----------
    data
        The folder and its table.
    columns
        Meaning of the columns of the table; `features` does not apply.
    labels, classify
        As in `read_table`.
    """
    present = _present(Path(data.folder))
    given = columns.columns if isinstance(columns, Schema) else columns
    placed = given is not None and given.coordinates
    if data.table is None:
        reader, schema, rows = None, None, [[name] for name in present]
    else:
        if columns is None:
            raise InputError(f"{data.table}: name its columns, Columns(set=…, target=…)")
        learned = not isinstance(columns, Schema)
        schema = Schema(columns, ()) if isinstance(columns, Columns) else columns
        if schema.columns.covariates:
            raise InputError(
                f"{data.table}: covariates of feature folders are not supported yet; leave them out"
            )
        reader, rows = _read_table(data, schema, labels=labels, classify=classify, learning=learned)
        if learned:
            schema = replace(schema, classes=reader.classes())
    files = _matched(data, rows, present)
    shapes = _checked(data, [f for row in files for f in row], placed=placed)
    files = [[f for f in row if f in shapes] for row in files]
    dtypes = {dtype for _, dtype in shapes.values()}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.dtype(np.float32)
    pool = FeaturePool(data.pool_folder(placed=placed), placed=placed)
    listed = list(shapes)
    parts = dict(zip(listed, pool.add(listed, dtype, progress=data.progress), strict=True))
    return _sets(pool, [[parts[f] for f in row] for row in files], reader, schema, present)


def _present(folder: Path) -> dict[str, Path]:
    """Return the feature files of a folder by name without suffix."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of features")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in FORMATS:
            continue
        if path.stem in found:
            raise InputError(
                f"{folder} has two files for {path.stem!r}: {found[path.stem].name} and "
                f"{path.name}; remove one of them"
            )
        found[path.stem] = path
    if not found:
        pickles = next(folder.glob("*.pt"), None)
        reason = f" ({pickles.name}: {CONVERT})" if pickles else f": {', '.join(FORMATS)}"
        raise InputError(f"{folder} holds no feature files{reason}")
    return found


def _read_table(
    data: FeatureFolder, schema: Schema, *, labels: bool, classify: bool, learning: bool
) -> tuple[SetReader, list[list[str]]]:
    """Read labels and groups, and return the names of the files of every row."""
    source = open_source(data.table)
    columns = schema.columns
    column = columns.file or next((c for c in FILE_COLUMNS if c in source.names), None)
    if data.files is not None or column is None:
        column = columns.set
    if column not in source.names:
        raise missing_column(column, source.names, where=source.name)
    source = source.with_text([*named_columns(schema, classify=classify), column])
    reader = SetReader(source, schema, labels=labels, classify=classify, learning=learning)
    names: list[str] = []
    for batch in source.batches(list(dict.fromkeys([*reader.needed(), column]))):
        names += [_text(v, source, column) for v in batch.column(column).to_pylist()]
        reader.add(batch)
    if not names:
        raise InputError(f"{source.name} has no rows; at least one set is needed")
    if data.files is None:
        return reader, [[name] for name in names]
    assigned = _assigned(open_source(data.files), columns)
    unlisted = [name for name in assigned if name not in set(names)]
    if unlisted and not data.partial:
        raise InputError(
            f"{data.files} names {_some(unlisted, 'set')} that {source.name} has no label for; "
            "add them, or leave them out with partial=True (--partial)"
        )
    return reader, [assigned.get(name, []) for name in names]


def _assigned(source: Source, columns: Columns) -> dict[str, list[str]]:
    """Return the files of every set from a table of files."""
    wanted = (columns.file,) if columns.file else FILE_COLUMNS
    column = next((c for c in wanted if c in source.names), None)
    for name in (column or wanted[0], columns.set):
        if name not in source.names:
            raise missing_column(name, source.names, where=source.name)
    assert column is not None
    found: dict[str, list[str]] = {}
    for batch in source.with_text([columns.set, column]).batches([columns.set, column]):
        sets, files = (batch.column(c).to_pylist() for c in (columns.set, column))
        for name, file in zip(sets, files, strict=True):
            key = _text(name, source, columns.set)
            found.setdefault(key, []).append(_text(file, source, column))
    return found


def _text(value: Any, source: Source, column: str) -> str:
    if value is None:
        raise InputError(
            f"{source.name}, column {column!r}: a row has no value; every row needs one"
        )
    return str(value)


def _matched(
    data: FeatureFolder, rows: list[list[str]], present: dict[str, Path]
) -> list[list[Path]]:
    """Return the files of every row; name what has no counterpart."""
    found = [[present.get(_stem(name, present)) for name in row] for row in rows]
    lost = [n for row, files in zip(rows, found, strict=True)
            for n, f in zip(row, files, strict=True) if f is None]  # fmt: skip
    named = {f for row in found for f in row}
    spare = [path.name for path in present.values() if path not in named]
    if lost and (not data.partial or len(lost) == sum(map(len, rows))):
        pickles = [name for name in lost if (Path(data.folder) / f"{name}.pt").exists()]
        reason = f" ({pickles[0]}.pt exists: {CONVERT})" if pickles else ""
        raise InputError(
            f"{data} names {_some(lost, 'file')} that {data.folder} does not hold{reason}; "
            "add them, or leave such rows out with partial=True (--partial)"
        )
    if spare and data.table is not None and not data.partial:
        raise InputError(
            f"{data.folder} holds {_some(spare, 'file')} that {data} has no label for; "
            "add them, or leave them out with partial=True (--partial)"
        )
    return [[f for f in files if f is not None] for files in found]


def _stem(name: str, present: dict[str, Path]) -> str:
    """Return a name without the suffix of a feature file or an image."""
    path = Path(name)
    known = name not in present and path.suffix.lower() in (*FORMATS, *IMAGES)
    return path.stem if known else name


def _checked(
    data: FeatureFolder, files: Sequence[Path], *, placed: bool
) -> dict[Path, tuple[int, Any]]:
    """Return width and type of every file that has instances; name the first fault."""
    found: dict[Path, tuple[int, Any]] = {}
    for path in dict.fromkeys(files):
        with open_features(path, placed=placed) as file:
            rows, width = file.shape
            if not rows or not width:
                if data.partial:
                    continue
                raise InputError(
                    f"{path} has no instances; remove it and its row, or leave out empty files "
                    "with partial=True (--partial)"
                )
            found[path] = width, file.dtype
        first = next(iter(found))
        if width != found[first][0]:
            raise InputError(
                f"{path} has {width:,} features, but {first} has {found[first][0]:,}; "
                "all files must come from the same encoder"
            )
    if not found:
        raise InputError(f"{data.folder}: no file has instances")
    return found


def _sets(
    pool: FeaturePool,
    rows: list[list[Part]],
    reader: SetReader | None,
    schema: Schema | None,
    names: dict[str, Path],
) -> SetData:
    """Return sets over the pool: the rows of their files, one after another."""
    counts = [sum(part.rows for part in row) for row in rows]
    if reader is None:
        order, cuts = np.arange(len(rows)), np.arange(len(rows) + 1)
        about: dict[str, Any] = {"ids": np.array(list(names))}
    else:
        assert schema is not None
        _, about = reader.arrays(schema, learn=False)
        order, cuts = about.pop("index"), about.pop("offsets")
    files = [rows[k] for k in order]
    spans = [np.arange(p.start, p.stop) for row in files for p in row]
    index = np.concatenate(spans) if spans else np.arange(0)
    offsets = offsets_of(np.array(counts)[order])[cuts]
    instances, coords = pool.tables()
    placed = any(part.unit for row in rows for part in row)
    sets = Sets(instances, index, offsets, coords=coords if placed else None, **about)
    kept = np.flatnonzero(sets.sizes)
    groups, splits = (None, None) if reader is None else (reader.groups(), reader.splits())
    groups, splits = (None if a is None else a[kept] for a in (groups, splits))
    parts = tuple(sorted({p for row in rows for p in row}, key=lambda p: p.start))
    sets = sets if len(kept) == len(sets) else sets.subset(kept)
    classes = None if schema is None else schema.classes
    return SetData(sets, schema, groups, classes, splits=splits, parts=parts)


def _some(names: Sequence[str], what: str) -> str:
    shown = ", ".join(map(repr, names[:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{len(names):,} {what}{'s' * (len(names) > 1)} ({shown}{more})"
