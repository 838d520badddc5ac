"""Convert what estimators accept as X into `Sets`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.documents import opened
from capnets.estimators.set_frame import SetFrame
from capnets.ingest import (
    Columns,
    FeatureFolder,
    Schema,
    SetData,
    read_folder,
    read_npz,
    read_table,
)
from capnets.ingest.addresses import is_address
from capnets.ingest.sources import arrow_table, is_table
from capnets.sets import Sets

__all__ = ["is_table", "known_table", "read"]


def read(
    X: Any,
    columns: Columns | Schema | str | None,
    *,
    labels: bool = False,
    classify: bool = False,
    learning: bool = False,
    folder: Path | None = None,
) -> SetData:
    """Read sets from arrays, `Sets`, a table whose columns are known, or a feature folder.

    With a folder the instances of a table are stored there and memory-mapped. `learning` as in
    `Sets.from_arrays`; a schema learns offsets instead.
    """
    if isinstance(X, SetFrame):
        columns = _same_sets(columns, X.set)
    X = known_table(X)
    if isinstance(X, FeatureFolder):
        known = Columns(set=columns) if isinstance(columns, str) else columns
        return read_folder(X, known, labels=labels and X.table is not None, classify=classify)
    if isinstance(X, Sets):
        data = SetData(X)
    elif isinstance(X, str | Path) and Path(X).suffix == ".npz" and columns is None:
        data = read_npz(X, labels=labels, learning=learning)
    elif is_table(X):
        columns = _columns_of(columns)
        if isinstance(columns, Schema) and not columns.features:
            raise InputError(
                f"{X}: the network was trained on a feature folder; give FeatureFolder(folder, "
                "table) (on the command line: --features FOLDER)"
            )
        target = columns.columns.target if isinstance(columns, Schema) else columns.target
        data = read_table(
            opened(X, columns), columns,
            labels=labels and bool(target), classify=classify, folder=folder,
        )  # fmt: skip
        return replace(data, index=X.index) if hasattr(X, "iloc") else data
    else:
        data = SetData(Sets.from_arrays(_arrays(X), learning=learning))
    if not len(data.sets):
        raise InputError("zero sets: give at least one")
    empty = np.flatnonzero(data.sets.sizes == 0)
    if len(empty):
        raise InputError(f"set {empty[0]} has no instances; remove it")
    if 0 in data.sets.feature_shape:
        raise InputError(
            f"X has 0 feature(s) (shape=({len(data.sets.index)}, 0)) while a minimum of 1 is "
            "required."
        )
    data.sets.check_finite()
    return data


def _columns_of(columns: Columns | Schema | str | None) -> Columns | Schema:
    if columns is None:
        raise InputError(
            "X is a table with one row per instance: pass its set column and its target, e.g. "
            'SetRegressor(columns=Columns(set="basket", target="worth"))'
        )
    return Columns(set=columns) if isinstance(columns, str) else columns


def _same_sets(columns: Columns | Schema | str | None, name: str) -> Columns | Schema | str:
    """Return the columns of an estimator, whose set column must be that of the `SetFrame`."""
    if columns is None:
        return name
    known = columns.columns if isinstance(columns, Schema) else columns
    own = known if isinstance(known, str) else known.set
    if own != name:
        raise InputError(f"X has its sets by column {name!r}, the estimator by {own!r}")
    return columns


def known_table(X: Any) -> Any:
    """Return X, if it is a table, in a form that `read_table` knows."""
    if isinstance(X, SetFrame):
        X = X.frame
    if isinstance(X, str | Path) and not is_address(X) and not Path(X).exists():
        raise InputError(f"{X}: there is no such file")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame of polars
        X = X.collect()
    if is_table(X) or isinstance(X, Sets | FeatureFolder):
        return X
    if type(X).__module__.startswith("pyarrow"):
        return arrow_table(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        raise InputError(
            f"X is a {type(X).__name__}, neither a pandas frame nor an Arrow stream; "
            "give a pandas frame (X.to_pandas()) or an Arrow table (X.to_arrow())"
        )
    return X


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
