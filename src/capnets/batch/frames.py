"""Predict a frame of whole sets with a run: a pure function that any engine can map."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capnets.errors import InputError
from capnets.estimators.classification import SetClassifier
from capnets.estimators.regression import SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.ingest.columns import ROW

__all__ = ["columns_read", "load", "predict", "set_column"]

Estimator = SetRegressor | SetClassifier


def predict(frame: pd.DataFrame, run: str | Path | Estimator) -> pd.DataFrame:
    """Return predictions and added values for every row of a frame.

    The frame must hold whole sets: a part of a set is a valid set, so a set that is cut in two goes
    unnoticed. `predict_dataset` brings the rows of a set together first.

    Parameters
    ----------
    frame
        One row per instance. Columns that the run does not read, such as keys, are kept.
    run
        The folder of a run that was trained on a table, or a fitted estimator.

    Returns
    -------
    pandas.DataFrame
        The set column, the columns that the run does not read, and `prediction` and `added_value`;
        for a classifier `probability_CLASS` too. Rows and index are those of `frame`.
    """
    estimator = load(run)
    kept = [n for n in frame.columns if n == set_column(estimator) or n not in _features(estimator)]
    out: pd.DataFrame = frame[kept].copy()
    if not len(frame):
        return out.assign(**{n: np.empty(0, t) for n, t in _new_columns(estimator).items()})
    sets = estimator.set_ids(frame)
    # Set ids are text where the column is: compare both as text.
    rows = pd.Index(sets.astype(str)).get_indexer(frame[set_column(estimator)].astype(str))
    if (rows < 0).any():
        raise InputError(f"set column {set_column(estimator)!r} has values that name no set")
    if isinstance(estimator, SetClassifier):
        out["prediction"] = estimator.predict(frame)[rows]
        for k, share in enumerate(estimator.predict_proba(frame).T):
            out[f"probability_{estimator.classes_[k]}"] = share[rows].astype(np.float32)
    else:
        out["prediction"] = np.asarray(estimator.predict(frame), np.float32)[rows]
    added = np.asarray(estimator.added_values(frame), np.float32)
    for name, values in zip(_value_names(estimator), added.reshape(len(frame), -1).T, strict=True):
        out[name] = values
    return out


def columns_read(estimator: Estimator) -> list[str]:
    """Return the columns of a table that predictions need."""
    assert estimator.schema_ is not None
    order = estimator.schema_.columns.order
    needed = [set_column(estimator), *_features(estimator), *([order] if order else [])]
    return list(dict.fromkeys(needed))


def set_column(estimator: Estimator) -> str:
    """Return the name of the set column."""
    assert estimator.schema_ is not None
    return estimator.schema_.columns.set


def load(run: str | Path | Estimator) -> Estimator:
    """Load the estimator of a run once per process and check that it can read tables."""
    estimator = run if isinstance(run, SetRegressor | SetClassifier) else _loaded(str(run))
    if estimator.schema_ is None or set_column(estimator) == ROW:
        raise InputError("batch prediction needs a run trained on a table with a set column")
    if isinstance(estimator, SetClassifier) and estimator.multilabel_:
        raise InputError(
            "batch prediction gives one label per set; use `capnets predict` for several"
        )
    return estimator


@lru_cache(maxsize=4)
def _loaded(folder: str) -> Estimator:
    import torch

    # One thread per worker: engines already run one worker per core.
    torch.set_num_threads(1)
    return load_estimator(folder)


def _features(estimator: Estimator) -> set[str]:
    assert estimator.schema_ is not None
    return {feature.name for feature in estimator.schema_.features}


def _value_names(estimator: Estimator) -> list[str]:
    if estimator.spec_.outputs == 1:
        return ["added_value"]
    return [f"added_value_{name}" for name in estimator.output_names()]


def _new_columns(estimator: Estimator) -> dict[str, Any]:
    """Return the dtypes of the columns that `predict` adds."""
    if not isinstance(estimator, SetClassifier):
        shares: dict[str, Any] = {"prediction": np.float32}
    else:
        classes = estimator.classes_
        shares = {"prediction": object if classes.dtype.kind in "OU" else classes.dtype}
        shares |= {f"probability_{c}": np.float32 for c in classes}
    return shares | dict.fromkeys(_value_names(estimator), np.float32)
