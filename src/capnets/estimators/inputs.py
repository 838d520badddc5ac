"""What estimators take as X and y, as `Sets`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.documents import opened
from capnets.sets import Array, Sets
from capnets.tables import Columns, Schema, read_npz, read_table
from capnets.tables.encode import as_text

__all__ = ["Given", "fingerprint", "labels_of", "per_set", "read", "weighted"]


#: Instances that are looked at at once.
ROWS = 65536


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
    native
        The classes as a frame holds them; a schema knows them as text.
    """

    sets: Sets
    schema: Schema | None = None
    groups: Array | None = None
    rows: bool = False
    native: tuple[Any, ...] | None = None

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
    folder: Path | None = None,
) -> Given:
    """Sets from a list of 2-D arrays, `Sets`, or a table whose columns are known.

    With a folder the instances of a table are kept there instead of in memory.
    """
    if isinstance(X, Sets):
        given = Given(X)
    elif isinstance(X, str | Path) and Path(X).suffix == ".npz":
        given = Given(read_npz(X, labels=labels))
    elif _is_table(X):
        if columns is None:
            raise InputError(
                "X is a table with one row per instance: name its set column when the estimator is "
                "made, columns='basket' or columns=Columns(set='basket', target=…, …)"
            )
        if isinstance(columns, str):
            columns = Columns(set=columns)
        target = columns.columns.target if isinstance(columns, Schema) else columns.target
        table = read_table(
            opened(X, columns), columns,
            labels=labels and bool(target), classify=classify, folder=folder,
        )  # fmt: skip
        native = _native(X, table.schema)
        return Given(table.sets, table.schema, table.groups, rows=True, native=native)
    else:
        given = Given(Sets.from_arrays(_arrays(X)))
    if not len(given.sets):
        raise InputError("zero sets: give at least one")
    empty = np.flatnonzero(given.sets.sizes == 0)
    if len(empty):
        raise InputError(f"set {empty[0]} has no instances; remove it")
    given.sets.check_finite()
    return given


def labels_of(y: Any, given: Given) -> Array:
    """Labels per set: those given, the target columns of the table, or the sets' own."""
    if y is not None:
        return per_set(y, given, name="y")
    if given.sets.y is None:
        raise InputError("y is missing: give one label per set, or name the target column")
    return np.asarray(given.sets.y)


def per_set(given_values: Any, given: Given, *, name: str) -> Array:
    """One value (or row of values) per set; a table may also repeat it in every row of the set."""
    values: Array = np.asarray(given_values)
    sets = given.sets
    if len(values) == len(sets):
        return values
    if not given.rows or len(values) != len(sets.index):
        rows = f" or {len(sets.index)} (one per row)" if given.rows else ""
        raise InputError(
            f"{name} has {len(values)} entries; {len(sets)} (one per set){rows} needed"
        )
    listed = values[sets.index]
    first: Array = listed[sets.offsets[:-1]]
    varies = listed != np.repeat(first, sets.sizes, axis=0)
    if varies.any():
        k = int(np.searchsorted(sets.offsets, np.argwhere(varies)[0][0], "right")) - 1
        owner = k if sets.ids is None else sets.ids[k]
        raise InputError(f"{name} varies within set {owner!s}; it must be constant within a set")
    return first


def fingerprint(sets: Sets) -> str:
    """A digest of instances, sets, labels and weights; the instances are read in pieces."""
    digest = hashlib.sha256(repr(sets.pool.shape).encode())
    for start in range(0, len(sets.pool), ROWS):
        digest.update(np.ascontiguousarray(sets.pool[start : start + ROWS]).data)
    for values in (sets.index, sets.offsets, sets.y, sets.weights):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).data)
    return digest.hexdigest()


def weighted(sets: Sets, *weights: Array | None) -> Sets:
    """The sets with the product of their own weights and the given ones."""
    product = None if sets.weights is None else np.asarray(sets.weights, dtype=np.float64)
    for extra in weights:
        if extra is not None:
            product = np.asarray(extra, dtype=np.float64) * (1.0 if product is None else product)
    if product is None:
        return sets
    if (product < 0).any() or not product.sum() > 0:
        raise InputError("weights must not be negative, and some must be above 0")
    # Mean 1, so that a weight changes what counts and not how fast is learned.
    return replace(sets, weights=(product / product.mean()).astype(np.float32))


def _native(X: Any, schema: Schema) -> tuple[Any, ...] | None:
    if schema.classes is None or not hasattr(X, "dtypes"):
        return None
    target = schema.columns.target[0]
    if target not in X.columns:
        return None
    values = {as_text(v): v for v in X[target].unique()}
    return tuple(values[c] for c in schema.classes) if set(schema.classes) <= set(values) else None


def _is_table(X: Any) -> bool:
    frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return isinstance(X, str | Path) or frame or type(X).__module__.startswith("pyarrow")


def _arrays(X: Any) -> list[Any]:
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim != 3:
        raise InputError(
            f"X has shape {X.shape}; expected a list with one 2-D array (instances x features) per "
            "set, or an array of sets x instances x features"
        )
    try:
        return list(X)
    except TypeError as error:
        raise InputError(
            f"X is a {type(X).__name__}; expected a list of 2-D arrays, Sets, or a table"
        ) from error
