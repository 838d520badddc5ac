"""Partitioned Parquet as pieces that workers read on their own.

An address is a path or a URL of fsspec (`s3://…`, `gs://…`, `hdfs://…`). Folders called key=value
add a column. A piece is a file or, of a large file, a row group.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from capnets.errors import InputError
from capnets.ingest.sources import reading

__all__ = ["POSITION", "Pieces", "open_address", "read_piece", "to_frame"]

#: Column with the place of a row in the data; after a shuffle it restores the order of a set.
POSITION = "__position__"
#: Files above this number of bytes are read row group by row group.
LARGE = 2**27
#: Positions of a piece start at a multiple of this number.
ROWS = 2**40


def open_address(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and its path there."""
    from fsspec.core import url_to_fs

    try:
        file_system, path = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise InputError(f"{address}: {error}") from error
    return file_system, path


class Pieces:
    """The pieces of a Parquet data set, in the order of its files.

    Workers receive the object: it holds names, row groups and the schema, but no rows.

    Parameters
    ----------
    address
        A Parquet file, or a folder of them.
    """

    def __init__(self, address: str) -> None:
        import pyarrow.dataset as ds

        files, path = open_address(address)
        with reading(address, "Parquet"):
            data = ds.dataset(
                path, filesystem=files, format="parquet", partitioning="hive",
                exclude_invalid_files=False,
            )  # fmt: skip
            if not data.files:
                raise InputError(f"{address}: there is no Parquet file in this folder")
            if POSITION in data.schema.names:
                raise InputError(f"{address}: rename the column {POSITION!r}")
            self.address, self.schema = address, _plain(data.schema)
            self.fragments = [*_fragments(data, files)]

    def __len__(self) -> int:
        return len(self.fragments)

    def read(self, number: int) -> pd.DataFrame:
        """Return the rows of a piece and their positions."""
        return read_piece(number, self.fragments[number], schema=self.schema)

    @cached_property
    def empty(self) -> pd.DataFrame:
        """A frame with the columns of a piece and no rows."""
        return to_frame(self.schema.empty_table()).assign(**{POSITION: np.empty(0, np.int64)})


def read_piece(number: int, fragment: Any, *, schema: Any) -> pd.DataFrame:
    """Return the rows of a fragment and their positions; columns keep their Arrow types."""
    with reading(fragment.path, "Parquet"):
        table = fragment.to_table(schema=schema, use_threads=False)
        table.validate(full=True)
    return to_frame(table).assign(**{POSITION: number * ROWS + np.arange(len(table))})


def to_frame(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a frame of Arrow columns: a missing integer is no float there."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def _plain(schema: Any) -> Any:
    """Return the schema without dictionaries, whose codes differ from file to file."""
    import pyarrow as pa

    fields = [
        f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema
    ]
    return pa.schema(fields)


def _fragments(data: Any, files: Any) -> Iterator[Any]:
    for fragment in data.get_fragments():
        large = files.size(fragment.path) > LARGE
        yield from fragment.split_by_row_group() if large else [fragment]
