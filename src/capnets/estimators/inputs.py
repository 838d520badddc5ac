"""What estimators take as X, as `Sets`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.documents import opened
from capnets.ingest import Columns, Schema, npz_classes, read_npz, read_table
from capnets.ingest.columns import ROW
from capnets.sets import Array, Sets

__all__ = ["Given", "read"]


@dataclass(frozen=True)
class Given:
    """Sets as the user gave them.

    Parameters
    ----------
    sets
        The sets; labels only if X itself had any.
    schema
        How a table was read; None for lists and `Sets`.
    groups
        The group of every set, if a table has a column for it.
    rows
        Whether X was a table: then instances are rows, and results per instance follow its rows.
    classes
        What the labels 0, 1, … stand for, if X names its classes.
    index
        What a frame calls its rows.
    """

    sets: Sets
    schema: Schema | None = None
    groups: Array | None = None
    rows: bool = False
    classes: tuple[Any, ...] | None = None
    index: Any = None

    @property
    def documents(self) -> bool:
        """Whether X was a table whose rows are sets, so that its rows name them."""
        return self.schema is not None and self.schema.columns.set == ROW

    @property
    def n_rows(self) -> int | None:
        """How many rows the table has that a set may have several of."""
        return len(self.sets.index) if self.rows and not self.documents else None

    @property
    def set_names(self) -> Any:
        """What the sets are called; None where they have no names."""
        return self.sets.ids if self.index is None or not self.documents else self.index

    @property
    def row_names(self) -> Any:
        """What the rows are called; None where X has none."""
        if self.n_rows is None:
            return None
        return range(self.n_rows) if self.index is None else self.index

    @property
    def order(self) -> str | None:
        """The column by which instances are ordered, if a table has one."""
        return None if self.schema is None else self.schema.columns.order

    def by_row(self, values: Array) -> Array:
        """Values listed as `sets.index` lists instances, as X lists them."""
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
    """Sets from a list of 2-D arrays, `Sets`, or a table whose columns are known.

    With a folder the instances of a table are kept there instead of in memory. `learning` as in
    `Sets.from_arrays`; a schema learns offsets instead.
    """
    X = _known_table(X)
    if isinstance(X, Sets):
        given = Given(X)
    elif isinstance(X, str | Path) and Path(X).suffix == ".npz":
        sets = read_npz(X, labels=labels, learning=learning)
        given = Given(sets, classes=npz_classes(X) if labels else None)
    elif _is_table(X):
        if columns is None:
            raise InputError(
                "X is a table with one row per instance: pass its set column and its target, e.g. "
                'SetRegressor(columns=Columns(set="basket", target="worth"))'
            )
        if isinstance(columns, str):
            columns = Columns(set=columns)
        target = columns.columns.target if isinstance(columns, Schema) else columns.target
        table = read_table(
            opened(X, columns), columns,
            labels=labels and bool(target), classify=classify, folder=folder,
        )  # fmt: skip
        return Given(
            table.sets, table.schema, table.groups, rows=True,
            classes=table.schema.classes, index=X.index if hasattr(X, "iloc") else None,
        )  # fmt: skip
    else:
        given = Given(Sets.from_arrays(_arrays(X), learning=learning))
    if not len(given.sets):
        raise InputError("zero sets: give at least one")
    empty = np.flatnonzero(given.sets.sizes == 0)
    if len(empty):
        raise InputError(f"set {empty[0]} has no instances; remove it")
    given.sets.check_finite()
    return given


def _known_table(X: Any) -> Any:
    """X, a table in one of the forms that `read_table` knows; refused in others."""
    if isinstance(X, str | Path) and not Path(X).exists():
        raise InputError(f"{X}: there is no such file")
    if hasattr(X, "columns") and hasattr(X, "dtypes") and not hasattr(X, "iloc"):
        raise InputError(
            f"X is a {type(X).__name__} that pandas did not make; "
            "give a pandas frame (X.to_pandas()) or an Arrow table (X.to_arrow())"
        )
    if not type(X).__module__.startswith("pyarrow"):
        return X
    import pyarrow as pa

    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if not isinstance(X, pa.Table):
        raise InputError(f"X is a pyarrow {type(X).__name__}; give a Table or a RecordBatch")
    return X


def _is_table(X: Any) -> bool:
    frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return isinstance(X, str | Path) or frame or type(X).__module__.startswith("pyarrow")


def _arrays(X: Any) -> list[Any]:
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
    return [_array(x, k) for k, x in enumerate(arrays)]


def _array(x: Any, k: int) -> Array:
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:  # lists of unequal lengths, and others
        raise InputError(
            f"set {k} is a {type(x).__name__} that is no array of instances x features: {error}"
        ) from error
