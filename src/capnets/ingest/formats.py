"""File formats of tables: Parquet, Feather, CSV, JSON lines, .npz, and folders of Parquet files.

Installed packages add formats through the entry-point group `capnets.readers`: the name is a suffix
(`.sas`), the value a function from a path to a `Source` or to anything that streams Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from capnets.errors import InputError
from capnets.ingest.npz import NpzTable
from capnets.ingest.source import BLOCK, GAPS, ROWS, Source, first_line

__all__ = ["FORMATS", "GROUP", "Dataset", "readers"]

#: Entry-point group of packages that add formats.
GROUP = "capnets.readers"


class _Parquet(Source):
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        # The defaults read a whole row group ahead.
        self.file = pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
        self.name, self.schema = str(path), self.file.schema_arrow
        self.rows = self.file.metadata.num_rows

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.file.iter_batches(ROWS, columns=list(columns), use_threads=False)


class _Feather(Source):
    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.name = str(path)
        with path.open("rb") as file:
            if file.read(6) != b"ARROW1":  # Arrow checks the end of the file only
                raise InputError(f"{path} cannot be read as feather: not an Arrow IPC file")
        self.file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.schema = self.file.schema

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for number in range(self.file.num_record_batches):
            batch = self.file.get_batch(number).select(list(columns))
            for start in range(0, len(batch), ROWS):
                yield batch.slice(start, ROWS)


class Dataset(Source):
    """An Arrow data set, read batch by batch.

    Parameters
    ----------
    data
        A `pyarrow.dataset.Dataset`.
    name
        Name of the table in messages.
    """

    def __init__(self, data: Any, name: str) -> None:
        self.data, self.name, self.schema = data, name, data.schema

    @classmethod
    def of_folder(cls, path: Path) -> Dataset:
        """Open a folder of Parquet files; folders called key=value add a column."""
        import pyarrow.dataset as ds

        data = ds.dataset(path, format="parquet", partitioning="hive", exclude_invalid_files=False)
        if not data.files:
            raise InputError(f"{path}: there is no Parquet file in this folder")
        return cls(data, str(path))

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        scanner = self.data.scanner(columns=list(columns), batch_size=ROWS, use_threads=False)
        yield from scanner.to_batches()


class _Json(Source):
    """One JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.schema = self._open().schema

    def _open(self, schema: Any = None) -> Any:
        from pyarrow import json as arrow_json

        return arrow_json.open_json(
            self.path,
            read_options=arrow_json.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema,
                unexpected_field_behavior="infer" if schema is None else "ignore",
            ),
        )

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        chosen = pa.schema([self.schema.field(name) for name in columns])
        for batch in self._open(chosen):
            for start in range(0, len(batch), ROWS):
                yield batch.select(list(columns)).slice(start, ROWS)


class _Csv(Source):
    untyped = True

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path, self.name = path, str(path)
        if path.suffix in (".csv", ".tsv"):  # not compressed
            _check_text(path)
        self.booleans: dict[str, bool] = {}
        first = self._open({}).schema
        self.header = tuple(first.names)
        # The first block decides the types; an integer there may be a fraction further down.
        types = [pa.float64() if pa.types.is_integer(t) else t for t in first.types]
        self.schema = pa.schema(list(zip(first.names, types, strict=True)))

    @property
    def index(self) -> list[str]:
        """The heading that pandas and R give to row names."""
        return [""]

    def with_text(self, columns: Collection[str]) -> Source:
        import pyarrow as pa

        named = copy(self)
        named.schema = pa.schema(
            field.with_type(pa.string())
            if field.name in columns and not self._is_boolean(field)
            else field
            for field in self.schema
        )
        return named

    def _is_boolean(self, field: Any) -> bool:
        """Return whether a column is Boolean to its end; spellings of one value are the same."""
        import pyarrow as pa

        if pa.types.is_boolean(field.type) and field.name not in self.booleans:
            try:
                for _ in self._open({field.name: field.type}, [field.name]):
                    pass
                self.booleans[field.name] = True
            except pa.ArrowException:
                self.booleans[field.name] = False
        return self.booleans.get(field.name, False)

    def _open(self, types: dict[str, Any], columns: Sequence[str] = ()) -> Any:
        from pyarrow import csv

        tabs = ".tsv" in self.path.suffixes
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter="\t" if tabs else ","),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=list(columns), null_values=GAPS
            ),
        )

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        types = dict(zip(self.schema.names, self.schema.types, strict=True))
        try:
            for batch in self._open({n: types[n] for n in columns}, columns):
                yield _without_empty(batch)
        except pa.ArrowInvalid as error:
            reason = re.sub(
                r"CSV column #(\d+)",
                lambda m: f"column {self.schema.names[int(m[1])]!r}",
                first_line(error),
            )
            raise InputError(f"{self.name}: {reason}; correct this value") from error


FORMATS: dict[str, Callable[[Path], Any]] = {
    ".parquet": _Parquet, ".pq": _Parquet, ".feather": _Feather, ".arrow": _Feather,
    ".csv": _Csv, ".tsv": _Csv, ".jsonl": _Json, ".ndjson": _Json,
    ".npz": NpzTable,
}  # fmt: skip


@cache
def readers() -> dict[str, Callable[[Path], Any]]:
    """Return all formats by suffix: the built-in ones, and those of installed packages."""
    found = dict(FORMATS)
    for point in entry_points(group=GROUP):
        if not point.name.startswith(".") or point.name in found:
            raise InputError(
                f"entry point {point.name!r} of {GROUP} ({point.value}) must be named after a new "
                "suffix, such as .sas"
            )
        found[point.name] = point.load()
    return found


def _check_text(path: Path) -> None:
    """Refuse a text file with null bytes, which readers treat differently."""
    with path.open("rb") as file:
        start = 0
        while block := file.read(BLOCK):
            if (place := block.find(b"\0")) >= 0:
                raise InputError(
                    f"{path}: byte {start + place} is null; the file is damaged or not UTF-8"
                )
            start += len(block)


def _without_empty(batch: Any) -> Any:
    """Return the batch with empty text as missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gap = pa.scalar(None, pa.string())
    return pa.RecordBatch.from_arrays(
        [
            pc.if_else(pc.equal(c, ""), gap, c) if pa.types.is_string(c.type) else c
            for c in batch.columns
        ],
        schema=batch.schema,
    )
