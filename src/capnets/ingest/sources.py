"""Read tables as streams of Arrow record batches.

Parquet is read row group by row group and CSV block by block, so no file is held as a whole. Every
batch is validated before it is used: Arrow trusts the offsets in its buffers, and one flipped bit
in a file can otherwise end the process.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from capnets.errors import InputError

__all__ = ["FORMATS", "Source", "arrow_table", "open_source", "reading"]

#: Maximum number of rows of a batch.
ROWS = 65536
#: Spellings of a missing number in text files. In columns of names only an empty field is missing.
GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
#: Bytes of a CSV file that are held in memory at once.
BLOCK = 2**23


class Source(ABC):
    """A table with a name, a schema, and batches of rows.

    Attributes
    ----------
    name
        Name of the table in messages.
    schema
        Arrow schema of the columns.
    rows
        Number of rows, or None if it is unknown before the end.
    untyped
        Whether the table is stored as text, so that column types are guesses.
    header
        The first row of a text file, which names the columns.
    """

    name: str
    schema: Any
    rows: int | None = None
    untyped: bool = False
    header: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The column names; a duplicate is an error."""
        names = list(self.schema.names)
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{self.name}: there are two columns {name!r}; rename one of them")
        return names

    @property
    def index(self) -> list[str]:
        """Columns that were the index of a stored frame; they carry no information."""
        try:
            stored = json.loads((self.schema.metadata or {}).get(b"pandas", b"{}"))
            return [name for name in stored["index_columns"] if isinstance(name, str)]
        except (ValueError, TypeError, KeyError):  # no metadata of pandas, or damaged
            return []

    def with_text(self, columns: Collection[str]) -> Source:
        """Return the same table with these columns as text, if column types are guesses.

        Names must not pass through a number: 0001 is not 1, and two large integers may become the
        same float.
        """
        return self

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield validated record batches with the given columns, in the order of the rows."""
        with reading(self.name):
            for batch in self._batches(columns):
                batch.validate(full=True)
                yield batch

    @abstractmethod
    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches as they are stored."""


@contextmanager
def reading(name: str, kind: str = "", *, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Convert library errors about a damaged file to an `InputError` that names the file."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{name}: there is no such file") from error
    except MemoryError as error:
        raise InputError(
            f"{name} cannot be read: it claims to hold more than fits into memory; "
            "it may be damaged. Write it again, or read it on a larger machine."
        ) from error
    except (OSError, ValueError, OverflowError, pa.ArrowException, *also) as error:
        kind = kind and f" as {kind}"
        raise InputError(f"{name} cannot be read{kind}: {_first_line(error)}") from error


class _Table(Source):
    def __init__(self, table: Any, name: str) -> None:
        self.table, self.name = table, name
        self.schema, self.rows = table.schema, table.num_rows

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.table.select(list(columns)).to_batches(max_chunksize=ROWS)


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


class _Dataset(Source):
    """A folder of Parquet files; folders called key=value add a column."""

    def __init__(self, path: Path) -> None:
        import pyarrow.dataset as ds

        self.name = str(path)
        self.data = ds.dataset(
            path, format="parquet", partitioning="hive", exclude_invalid_files=False
        )
        if not self.data.files:
            raise InputError(f"{path}: there is no Parquet file in this folder")
        self.schema = self.data.schema

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
                _first_line(error),
            )
            raise InputError(f"{self.name}: {reason}; correct this value") from error


FORMATS: dict[str, Callable[[Path], Source]] = {
    ".parquet": _Parquet, ".pq": _Parquet, ".feather": _Feather, ".arrow": _Feather,
    ".csv": _Csv, ".tsv": _Csv, ".jsonl": _Json, ".ndjson": _Json,
}  # fmt: skip


def open_source(table: Any) -> Source:
    """Open a file, a folder of Parquet files, a pandas frame or anything that streams Arrow.

    Files are Parquet, CSV, TSV, Feather or JSON lines. Polars frames and DuckDB relations stream
    Arrow by `__arrow_c_stream__`.
    """
    if isinstance(table, Source):
        return table
    if hasattr(table, "iloc"):
        return _frame(table)
    if hasattr(table, "__arrow_c_stream__"):
        return _Table(arrow_table(table), "the table")
    path = Path(table)
    if path.is_dir():
        with reading(str(path), "a folder of Parquet files"):
            return _Dataset(path)
    suffix = next((s for s in reversed(path.suffixes) if s in FORMATS), path.suffix)
    if suffix not in FORMATS:
        other = (
            "; an .npz file has no columns, and suits networks that were trained on one"
            if suffix == ".npz"
            else f" (and sets from .npz), not {suffix or 'this'}"
        )
        raise InputError(f"{path}: tables are read from {', '.join(FORMATS)}{other}")
    with reading(str(path), suffix[1:]):
        source = FORMATS[suffix](path)
        _ = source.names, str(source.schema)  # names that are not UTF-8 raise here
    return source


def arrow_table(table: Any) -> Any:
    """Return an Arrow table from an object of pyarrow or one with `__arrow_c_stream__`."""
    import pyarrow as pa

    try:
        return pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"X is a {type(table).__module__.split('.')[0]} {type(table).__name__} that is not a "
            f"table; give a Table or a RecordBatch ({_first_line(error)})"
        ) from error


def _frame(frame: Any) -> Source:
    import pyarrow as pa

    names = [str(c) for c in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the frame has two columns {name!r}; rename one of them")
    for column, kind in frame.dtypes.items():
        if type(kind).__name__ == "SparseDtype":
            frame = frame.copy(deep=False)
            frame[column] = frame[column].sparse.to_dense()
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "the frame has a column with values of several types, or beyond 64 bits: "
            f"{_first_line(error)}"
        ) from error
    return _Table(table.rename_columns(names), "the frame")


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


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
