"""Metrics: arrays in, a number out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from capnets.errors import InputError

__all__ = ["accuracy", "added_value_error", "mae", "mse", "r2", "regression", "rmse"]


def mse(y: Any, prediction: Any) -> float:
    """Return the mean squared error.

    >>> mse([1, 2], [1, 4])
    2.0
    """
    return float(np.mean(_difference(y, prediction) ** 2))


def rmse(y: Any, prediction: Any) -> float:
    """Return the root of the mean squared error."""
    return math.sqrt(mse(y, prediction))


def mae(y: Any, prediction: Any) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(_difference(y, prediction))))


def r2(y: Any, prediction: Any) -> float:
    """Return the explained share of the variance of the labels, over all outputs together.

    For constant labels it is 1 if predictions are exact and 0 otherwise, as in scikit-learn. For a
    single set it is not defined: NaN.
    """
    if len(np.atleast_1d(y)) < 2:
        return math.nan
    error = mse(y, prediction)
    variance = float(np.var(np.asarray(y, dtype=np.float64), axis=0).mean())
    return 1 - error / variance if variance else float(error == 0)


def accuracy(y: Any, prediction: Any) -> float:
    """Return the share of predictions that round to the label, as in the paper.

    >>> accuracy([3, 5], [3.4, 5.6])
    0.5
    """
    return float(np.mean(np.abs(_difference(y, prediction)) < 0.5))


def added_value_error(expected: Any, values: Any) -> float:
    """Return the mean absolute error of added values."""
    return mae(expected, values)


def regression(y: Any, prediction: Any) -> dict[str, float]:
    """Return all metrics of a regression by name; of a single set without R², not defined there."""
    defined = (mse, rmse, mae, r2) if len(np.atleast_1d(y)) > 1 else (mse, rmse, mae)
    return {f.__name__: f(y, prediction) for f in defined}


def _difference(y: Any, prediction: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    a, b = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError(f"labels have shape {a.shape}, but predictions have shape {b.shape}")
    if not a.size:
        raise InputError("there are no sets to measure")
    difference: np.ndarray[Any, np.dtype[np.float64]] = a - b
    return difference
