"""Sets together with how they were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capnets.ingest.columns import ROW, Schema
from capnets.ingest.summary import Summary, summarize
from capnets.records import Record
from capnets.sets import Array, Sets

__all__ = ["Part", "SetData"]


@dataclass(frozen=True)
class Part(Record):
    """The rows of one file in a pool.

    Parameters
    ----------
    name, size, changed
        Path of the file when it was read, its bytes, and its time of change in nanoseconds.
    start, rows, width
        First row, number of rows and of features.
    dtype
        Type of the features.
    crc
        Checksum of the rows.
    side, unit
        Side of a tile and unit of the coordinates; `unit` is empty if there are none.
    """

    name: str
    size: int
    changed: int
    start: int
    rows: int
    width: int
    dtype: str
    crc: int
    side: float | None = None
    unit: str = ""

    @property
    def stop(self) -> int:
        """Row after the last one."""
        return self.start + self.rows


@dataclass(frozen=True)
class SetData:
    """Sets and how they relate to the table, file or arrays that they were read from.

    Parameters
    ----------
    sets
        The sets, with labels if they were asked for and exist.
    schema
        How the columns of a table were read; None for arrays, `Sets` and .npz files.
    groups
        Group of each set, if a group column was named.
    classes
        Names of the classes that labels number.
    ignored
        Columns without any meaning.
    missing
        Missing values per column.
    header
        Column names that a text file has in its first row.
    index
        Index of a pandas frame.
    splits
        Part of each set (`train`, `valid` or `test`), if a split column was named.
    parts
        Rows of `sets.instances` that come from each file of a feature folder.
    """

    sets: Sets
    schema: Schema | None = None
    groups: Array | None = None
    classes: tuple[Any, ...] | None = None
    ignored: tuple[str, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    index: Any = None
    splits: Array | None = None
    parts: tuple[Part, ...] = ()

    def summary(self) -> Summary:
        """Summarize sizes, features, labels and missing values, with warnings."""
        return summarize(
            self.sets, self.schema, classes=self.classes, ignored=self.ignored,
            missing=self.missing, header=self.header,
        )  # fmt: skip

    @property
    def documents(self) -> bool:
        """Return whether the rows of the table are documents, so that rows name sets."""
        return self.schema is not None and self.schema.columns.set == ROW

    @property
    def n_rows(self) -> int | None:
        """Number of rows of a table in which a set may have several."""
        per_row = self.schema is not None and not self.documents and not self.parts
        return len(self.sets.index) if per_row else None

    @property
    def set_names(self) -> Any:
        """Names of the sets; None if they have none."""
        return self.sets.ids if self.index is None or not self.documents else self.index

    @property
    def row_names(self) -> Any:
        """Names of the rows; None without a table."""
        if self.n_rows is None:
            return None
        return range(self.n_rows) if self.index is None else self.index

    def by_row(self, values: Array) -> Array:
        """Return values in the order of the rows of a table, given in the order of `sets.index`."""
        if self.schema is None or self.parts:
            return values
        out = np.empty_like(values)
        out[self.sets.index] = values
        return out
