"""Predict a frame of whole sets with a run: a pure function that any engine can map."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.predicting import prediction_columns
from capnets.estimators.runs import load_estimator
from capnets.ingest.columns import ROW
from capnets.ingest.frames import as_pandas, like
from capnets.sets import Array, Sets

__all__ = ["load", "predict", "set_column"]


def predict(frame: Any, run: str | Path | SetEstimator) -> Any:
    """Return predictions and added values for every row of a frame.

    The frame must hold whole sets: a part of a set is a valid set, so a set that is cut in two goes
    unnoticed. `predict_dataset` brings the rows of a set together first.

    Parameters
    ----------
    frame
        One row per instance: a frame of pandas, polars, Arrow or DuckDB. Columns that the run does
        not read, such as keys, are kept.
    run
        The folder of a run that was trained on a table, or a fitted estimator.

    Returns
    -------
    frame
        A frame of the same library (an Arrow table for DuckDB): the set column, the columns that
        the run does not read, and `prediction`, `added_value` and the other columns of
        `capnets predict`. Rows and index are those of `frame`.
    """
    return like(frame, _predict(as_pandas(frame), load(run)))


def _predict(frame: pd.DataFrame, estimator: SetEstimator) -> pd.DataFrame:
    kept = [n for n in frame.columns if n == set_column(estimator) or n not in _features(estimator)]
    out: pd.DataFrame = frame[kept].copy()
    new = _predicted(estimator, frame) if len(frame) else _nothing_predicted(estimator)
    return out.assign(**new)


def _predicted(estimator: SetEstimator, frame: pd.DataFrame) -> dict[str, Array]:
    data = estimator.read(frame)
    estimator.check_sizes(data.sets)
    columns = prediction_columns(estimator, data.sets)
    return {name: data.by_row(values) for name, values in columns.items()}


def _nothing_predicted(estimator: SetEstimator) -> dict[str, Array]:
    """Return the columns that `predict` adds, without rows."""
    count = estimator.spec_.covariates
    known = np.zeros((1, count)) if count else None
    one = Sets.from_arrays([np.zeros((1, estimator.n_features_in_))], covariates=known)
    return {name: values[:0] for name, values in prediction_columns(estimator, one).items()}


def set_column(estimator: SetEstimator) -> str:
    """Return the name of the set column."""
    assert estimator.schema_ is not None
    return estimator.schema_.columns.set


def load(run: str | Path | SetEstimator) -> SetEstimator:
    """Load the estimator of a run once per process and check that it can read tables."""
    estimator = run if isinstance(run, SetEstimator) else _loaded(str(run))
    if estimator.schema_ is None or set_column(estimator) == ROW:
        raise InputError("batch prediction needs a run trained on a table with a set column")
    return estimator


@lru_cache(maxsize=4)
def _loaded(folder: str) -> SetEstimator:
    import torch

    # One thread per worker: engines already run one worker per core.
    torch.set_num_threads(1)
    return load_estimator(folder)


def _features(estimator: SetEstimator) -> set[str]:
    assert estimator.schema_ is not None
    schema = estimator.schema_
    return {feature.name for feature in (*schema.features, *schema.covariates)}
