"""Tables as streams of Arrow batches, whatever they are stored as.

Parquet is read row group by row group, CSV block by block: no file is ever held as a whole.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from capnets.errors import InputError

__all__ = ["FORMATS", "Source", "open_source"]

#: Rows that are in memory at once.
ROWS = 65536
#: How text files write that a number is missing. Where names belong only an empty field is a gap.
GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
#: Bytes of a CSV file that are in memory at once.
BLOCK = 2**23


class Source(ABC):
    """A table with a name (for messages), a schema, and batches of rows.

    Attributes
    ----------
    name
        What messages call the table.
    schema
        Arrow's names and types of the columns.
    rows
        How many rows there are, or None where only reading to the end would tell.
    untyped
        Whether the table is stored as text, so that types are guesses.
    """

    name: str
    schema: Any
    rows: int | None = None
    untyped: bool = False

    @property
    def names(self) -> list[str]:
        """The columns; one that is there twice is an error."""
        names = list(self.schema.names)
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{self.name}: there are two columns {name!r}; rename one of them")
        return names

    @property
    def index(self) -> list[str]:
        """The columns that were the index of a frame, and say nothing about an instance."""
        stored = json.loads((self.schema.metadata or {}).get(b"pandas", b"{}"))
        return [name for name in stored.get("index_columns", ()) if isinstance(name, str)]

    def naming(self, columns: Collection[str]) -> Source:
        """The same table, with these columns as they are written where types are guesses.

        What names something must not pass through a number: 0001 is not 1, and of two large whole
        numbers a fraction may keep one.
        """
        return self

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches with the given columns, in the order of the rows."""


class _Table(Source):
    def __init__(self, table: Any, name: str) -> None:
        self.table, self.name = table, name
        self.schema, self.rows = table.schema, table.num_rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.table.select(list(columns)).to_batches(max_chunksize=ROWS)


class _Parquet(Source):
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        # Without these two, a whole row group is read ahead.
        self.file = pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
        self.name, self.schema = str(path), self.file.schema_arrow
        self.rows = self.file.metadata.num_rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.file.iter_batches(ROWS, columns=list(columns), use_threads=False)


class _Feather(Source):
    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.name = str(path)
        self.file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.schema = self.file.schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for number in range(self.file.num_record_batches):
            batch = self.file.get_batch(number).select(list(columns))
            for start in range(0, len(batch), ROWS):
                yield batch.slice(start, ROWS)


class _Csv(Source):
    untyped = True

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path, self.name = path, str(path)
        self.booleans: dict[str, bool] = {}
        first = self._open({}).schema
        # The first block decides the types; a whole number there may be a fraction further down.
        types = [pa.float64() if pa.types.is_integer(t) else t for t in first.types]
        self.schema = pa.schema(list(zip(first.names, types, strict=True)))

    @property
    def index(self) -> list[str]:
        return [""]  # the heading that pandas and R give to row names

    def naming(self, columns: Collection[str]) -> Source:
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
        """Whether a column has Booleans to its end; two spellings of one are the same."""
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

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        types = dict(zip(self.schema.names, self.schema.types, strict=True))
        try:
            for batch in self._open({n: types[n] for n in columns}, columns):
                yield _without_empty(batch)
        except pa.ArrowException as error:
            reason = re.sub(
                r"CSV column #(\d+)",
                lambda m: f"column {self.schema.names[int(m[1])]!r}",
                _first_line(error),
            )
            raise InputError(f"{self.name}: {reason}; correct this value") from error


FORMATS: dict[str, Callable[[Path], Source]] = {
    ".parquet": _Parquet, ".pq": _Parquet, ".feather": _Feather, ".arrow": _Feather,
    ".csv": _Csv, ".tsv": _Csv,
}  # fmt: skip


def open_source(table: Any) -> Source:
    """A file (Parquet, CSV, TSV, Feather), a pandas frame or an Arrow table as batches."""
    import pyarrow as pa

    if isinstance(table, Source):
        return table
    if isinstance(table, pa.Table):
        return _Table(table, "the table")
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return _frame(table)
    path = Path(table)
    suffix = next((s for s in reversed(path.suffixes) if s in FORMATS), path.suffix)
    if suffix not in FORMATS:
        other = (
            "; an .npz file has no columns, and suits networks that were trained on one"
            if suffix == ".npz"
            else f" (and sets from .npz), not {suffix or 'this'}"
        )
        raise InputError(f"{path}: tables are read from {', '.join(FORMATS)}{other}")
    try:
        return FORMATS[suffix](path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as {suffix[1:]}: {_first_line(error)}") from error


def _frame(frame: Any) -> Source:
    import pyarrow as pa

    names = [str(c) for c in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the frame has two columns {name!r}; rename one of them")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:
        raise InputError(
            f"the frame has a column with values of several types: {_first_line(error)}"
        ) from error
    return _Table(table.rename_columns(names), "the frame")


def _without_empty(batch: Any) -> Any:
    """The same rows; text that is empty is missing."""
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
    return str(error).splitlines()[0]
