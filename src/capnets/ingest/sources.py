"""Open anything that is a table: files, folders, addresses, and frames of any library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from capnets.errors import InputError
from capnets.ingest.addresses import is_address, local_copy
from capnets.ingest.formats import FORMATS, Dataset, readers
from capnets.ingest.source import GAPS, ROWS, Source, first_line, reading
from capnets.ingest.vectors import unfolded

__all__ = ["FORMATS", "GAPS", "Source", "arrow_table", "is_table", "open_source", "reading"]


def open_source(table: Any) -> Source:
    """Open a file, a folder of Parquet files, an address, or a frame.

    Files are Parquet, CSV, TSV, Feather, JSON lines, .npz, or of a format that a package adds. An
    address such as `s3://bucket/file.parquet` is opened by fsspec. Frames are those of pandas,
    Arrow tables and data sets, and everything that streams Arrow by `__arrow_c_stream__`: polars,
    DuckDB. A column of vectors (lists of equal length) becomes one column per entry.
    """
    return table if isinstance(table, Source) else unfolded(_open(table))


def is_table(table: Any) -> bool:
    """Return whether `open_source` can open an object."""
    return (
        isinstance(table, str | Path | Source)
        or hasattr(table, "iloc")
        or hasattr(table, "__arrow_c_stream__")
        or hasattr(table, "scanner")
    )


def _open(table: Any) -> Source:
    if hasattr(table, "iloc"):
        return _frame(table)
    if hasattr(table, "__arrow_c_stream__"):
        return _Table(arrow_table(table), "the table")
    if hasattr(table, "scanner"):
        return Dataset(table, "the data set")
    name, path = str(table), Path(table)
    if is_address(name):
        path = local_copy(name)
    if path.is_dir():
        with reading(name, "a folder of Parquet files"):
            return Dataset.of_folder(path)
    known = readers()
    suffix = next((s for s in reversed(path.suffixes) if s in known), path.suffix)
    if suffix not in known:
        raise InputError(f"{name}: tables are read from {', '.join(known)}, not {suffix or 'this'}")
    with reading(name, suffix[1:]):
        source = known[suffix](path)
        if not isinstance(source, Source):  # a package may return any table
            source = _open(source)
        source.name = name
        _ = source.names, str(source.schema)  # names that are not UTF-8 raise here
    return source


def arrow_table(table: Any) -> Any:
    """Return an Arrow table from an object of pyarrow or one with `__arrow_c_stream__`."""
    import pyarrow as pa

    try:
        return _without_views(pa.table(table))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"X is a {type(table).__module__.split('.')[0]} {type(table).__name__} that is not a "
            f"table; give a Table or a RecordBatch ({first_line(error)})"
        ) from error


def _without_views(table: Any) -> Any:
    """Return the table with plain text instead of views (polars), which few functions take."""
    import pyarrow as pa

    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

    def kind(given: Any) -> Any:
        if pa.types.is_dictionary(given):
            return pa.dictionary(given.index_type, kind(given.value_type), given.ordered)
        return plain.get(given, given)

    fields = [field.with_type(kind(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields, metadata=table.schema.metadata))


class _Table(Source):
    def __init__(self, table: Any, name: str) -> None:
        self.table, self.name = table, name
        self.schema, self.rows = table.schema, table.num_rows

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.table.select(list(columns)).to_batches(max_chunksize=ROWS)


def _frame(frame: Any) -> Source:
    import pyarrow as pa

    names = [str(c) for c in frame.columns]
    for name, count in Counter(names).items():
        if count > 1:
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
            f"{first_line(error)}"
        ) from error
    return _Table(table.rename_columns(names), "the frame")
