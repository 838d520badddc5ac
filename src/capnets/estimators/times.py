"""Read labels of survival: a time and an event per set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.per_set import named
from capnets.learn import Problem, Target
from capnets.sets import Array, Sets

__all__ = ["as_columns", "as_survival", "check_times"]


def as_survival(problem: Problem) -> Problem:
    """Return a problem of two amounts as one of a time and an event; check both."""
    y = np.asarray(problem.train.y)
    check_times(y, problem.train)
    if not y[:, 1].any():
        raise InputError("no set has an event: all are censored, so no hazard can be learned")
    return replace(problem, target=Target("survival", names=problem.target.names))


def as_columns(y: Any) -> Any:
    """Return labels as numbers in two columns, time and event; frames keep their index."""
    if y is None:
        return None
    if hasattr(y, "iloc"):
        if {"time", "event"} <= {*getattr(y, "columns", ())}:
            y = y[["time", "event"]]
        elif y.shape[1:] != (2,):
            raise InputError(
                "y needs the columns 'time' and 'event', but has "
                + ", ".join(map(repr, getattr(y, "columns", [y.name] if y.ndim == 1 else ())))
            )
        return _as_numbers(y)
    array = np.asarray(y)
    if array.dtype.names is not None:
        array = _fields(array)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"y has shape {array.shape}; expected a time and an event per set")
    return array


def _as_numbers(y: Any) -> Any:
    """Return a frame of numbers; name the column that holds something else."""
    names = getattr(y, "columns", ())
    for k, name in enumerate(names):
        column = y.iloc[:, k]
        try:
            if column.dtype.kind in "mM":
                raise TypeError(f"it holds {column.dtype}")
            column.astype(float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"column {name!r} of y is not numeric ({error}); the time is a number, such as "
                "days, and the event is 1 (event) or 0 (censored)"
            ) from error
    return y.astype(float)


def _fields(y: Array) -> Array:
    """Return time and event from a structured array, whose event is Boolean."""
    names = y.dtype.names or ()
    events = [name for name in names if y.dtype[name].kind == "b"]
    if len(names) != 2 or len(events) != 1:
        raise InputError(
            f"y has the fields {', '.join(names)}; expected one Boolean field (event) and a time"
        )
    time = next(name for name in names if name not in events)
    return np.stack([y[time].astype(float), y[events[0]].astype(float)], axis=1)


def check_times(y: Array, sets: Sets) -> None:
    """Raise unless y has times of at least 0 and events of 0 or 1."""
    if y.ndim != 2 or y.shape[1] != 2:
        raise InputError(
            "labels must be a time and an event per set: name two target columns, "
            'Columns(set=..., target=("time", "event"))'
        )
    wrong = ~(np.isfinite(y[:, 0]) & (y[:, 0] >= 0))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(f"the time of {named(sets, k)} is {y[k, 0]:g}; times must not be negative")
    wrong = ~np.isin(y[:, 1], (0, 1))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"the event of {named(sets, k)} is {y[k, 1]:g}; expected 1 (event) or 0 (censored). "
            "The time comes first."
        )
