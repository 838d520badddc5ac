"""Convert what estimators accept as X into `Sets`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.documents import opened
from capnets.ingest import Columns, Schema, Summary, Table, read_table, summarize
from capnets.ingest.columns import ROW
from capnets.ingest.sources import arrow_table
from capnets.sets import Array, Sets

__all__ = ["Given", "read"]


@dataclass(frozen=True)
class Given:
    """Sets and how they relate to the X that the user passed.

    Parameters
    ----------
    sets
        The sets, with labels only if X had them.
    schema
        How a table was read; None for lists, `Sets` and .npz files.
    groups
        Group of each set, if the table has a group column.
    rows
        Whether X was a table, so that results per instance follow its rows.
    classes
        Names of the classes that labels number, if X names them.
    index
        Index of a pandas frame.
    table
        The table as it was read, if X was one.
    """

    sets: Sets
    schema: Schema | None = None
    groups: Array | None = None
    rows: bool = False
    classes: tuple[Any, ...] | None = None
    index: Any = None
    table: Table | None = None

    def summary(self) -> Summary:
        """Summarize what was read, with warnings."""
        if self.table is not None:
            return replace(self.table, sets=self.sets, classes=self.classes).summary()
        return summarize(self.sets, self.schema, classes=self.classes)

    @property
    def documents(self) -> bool:
        """Return whether X was a table whose rows are documents, so that rows name sets."""
        return self.schema is not None and self.schema.columns.set == ROW

    @property
    def n_rows(self) -> int | None:
        """Number of rows of a table in which a set may have several."""
        return len(self.sets.index) if self.rows and not self.documents else None

    @property
    def set_names(self) -> Any:
        """Names of the sets; None if they have none."""
        return self.sets.ids if self.index is None or not self.documents else self.index

    @property
    def row_names(self) -> Any:
        """Names of the rows; None if X has no rows."""
        if self.n_rows is None:
            return None
        return range(self.n_rows) if self.index is None else self.index

    @property
    def order(self) -> str | None:
        """Column that orders the instances, if the table has one."""
        return None if self.schema is None else self.schema.columns.order

    def by_row(self, values: Array) -> Array:
        """Return values in the order of the rows of X, given in the order of `sets.index`."""
        if not self.rows:
            return values
        out = np.empty_like(values)
        out[self.sets.index] = values
        return out


def read(
    X: Any,
    columns: Columns | Schema | str | None,
    *,
    labels: bool = False,
    classify: bool = False,
    learning: bool = False,
    folder: Path | None = None,
) -> Given:
    """Read sets from a list of 2-D arrays, `Sets`, or a table whose columns are known.

    With a folder the instances of a table are stored there and memory-mapped. `learning` as in
    `Sets.from_arrays`; a schema learns offsets instead.
    """
    X = _known_table(X)
    if isinstance(X, Sets):
        given = Given(X)
    elif isinstance(X, str | Path) and Path(X).suffix == ".npz":
        table = read_table(X, None, labels=labels, learning=learning)
        given = Given(table.sets, classes=table.classes, table=table)
    elif _is_table(X):
        columns = _columns_of(columns)
        target = columns.columns.target if isinstance(columns, Schema) else columns.target
        table = read_table(
            opened(X, columns), columns,
            labels=labels and bool(target), classify=classify, folder=folder,
        )  # fmt: skip
        index = X.index if hasattr(X, "iloc") else None
        return Given(
            table.sets, table.schema, table.groups, rows=True, classes=table.classes,
            index=index, table=table,
        )  # fmt: skip
    else:
        given = Given(Sets.from_arrays(_arrays(X), learning=learning))
    if not len(given.sets):
        raise InputError("zero sets: give at least one")
    empty = np.flatnonzero(given.sets.sizes == 0)
    if len(empty):
        raise InputError(f"set {empty[0]} has no instances; remove it")
    if 0 in given.sets.feature_shape:
        raise InputError(
            f"X has 0 feature(s) (shape=({len(given.sets.index)}, 0)) while a minimum of 1 is "
            "required."
        )
    given.sets.check_finite()
    return given


def _columns_of(columns: Columns | Schema | str | None) -> Columns | Schema:
    if columns is None:
        raise InputError(
            "X is a table with one row per instance: pass its set column and its target, e.g. "
            'SetRegressor(columns=Columns(set="basket", target="worth"))'
        )
    return Columns(set=columns) if isinstance(columns, str) else columns


def _known_table(X: Any) -> Any:
    """Return X, if it is a table, in a form that `read_table` knows."""
    if isinstance(X, str | Path) and not Path(X).exists():
        raise InputError(f"{X}: there is no such file")
    if hasattr(X, "iloc") or isinstance(X, Sets):
        return X
    if hasattr(X, "__arrow_c_stream__") or type(X).__module__.startswith("pyarrow"):
        return arrow_table(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        raise InputError(
            f"X is a {type(X).__name__}, neither a pandas frame nor an Arrow stream; "
            "give a pandas frame (X.to_pandas()) or an Arrow table (X.to_arrow())"
        )
    return X


def _is_table(X: Any) -> bool:
    return isinstance(X, str | Path) or hasattr(X, "iloc") or hasattr(X, "__arrow_c_stream__")


def _arrays(X: Any) -> list[Any]:
    if hasattr(X, "tocsr"):
        raise InputError(
            "X is sparse, which is not supported: give one dense 2-D array per set (X.toarray())"
        )
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim != 3:
        raise InputError(
            f"X has shape {X.shape}; expected a list with one 2-D array (instances x features) per "
            "set, or an array of sets x instances x features"
        )
    if isinstance(X, Mapping):
        raise InputError(
            f"X is a {type(X).__name__}; give its arrays as a list, list(X.values()), "
            "or its columns as a table, pandas.DataFrame(X)"
        )
    try:
        arrays = list(X)
    except TypeError as error:
        raise InputError(
            f"X is a {type(X).__name__}; expected a list of 2-D arrays, Sets, or a table"
        ) from error
    return arrays
