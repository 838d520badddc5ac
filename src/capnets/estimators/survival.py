"""Predict hazards from times until an event, some of them censored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.per_set import named
from capnets.learn import Options, Plan, Problem, Target
from capnets.sets import Array, Sets

__all__ = ["BATCH", "SetSurvival"]

#: Default batch size: the risk sets of Cox's likelihood are those of a batch.
BATCH = 128


class SetSurvival(SetEstimator):
    """Predict the log-hazard of a set, and what each instance adds to it.

    Training minimizes Cox's partial likelihood with Efron's treatment of ties, over the risk sets
    of every batch. Log-hazards are relative: adding a constant to all of them changes nothing, so
    only their differences between sets have a meaning.

    Parameters are those of `SetRegressor`. Batches have 128 sets unless the recipe says otherwise.

    Notes
    -----
    Labels are (time, event), with event 1 where the event happened at that time and 0 where the set
    was censored. They are given as an array of two columns, a frame with the columns `time` and
    `event`, a structured array with one Boolean field (as in scikit-survival), or as two target
    columns of a table: `Columns(set="patient", target=("months", "died"))`.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> X = [draw.normal(size=(k % 3 + 1, 2)) for k in range(60)]
    >>> time = [draw.exponential(np.exp(-x[:, 0].sum())) for x in X]
    >>> y = np.stack([time, np.ones(60)], axis=1)
    >>> model = SetSurvival(members=1, epochs=30, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.6
    True
    """

    classifies = False

    def __sklearn_tags__(self) -> Any:
        """Declare that y has two columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        return tags

    def problem(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, folder: Path | None = None
    ) -> Problem:
        """Return what `fit` would learn from X and y."""
        found = super().problem(X, as_columns(y), sample_weight, folder=folder)
        y = np.asarray(found.train.y)
        check_times(y, found.train)
        if not y[:, 1].any():
            raise InputError("no set has an event: all are censored, so no hazard can be learned")
        return replace(found, target=Target("survival", names=found.target.names))

    def _distilled(self, problem: Problem, plan: Plan, teacher: Any) -> tuple[Problem, Plan]:
        raise InputError("teacher: SetSurvival learns from times and events only; leave it out")

    def options(self) -> Options:
        """Return the settings that the parameters ask for."""
        options = super().options()
        if options.recipe is None or isinstance(options.recipe, Mapping):
            return replace(options, recipe={"batch_size": BATCH, **(options.recipe or {})})
        return options

    def predict(self, X: Any) -> Array:
        """Return the log-hazard of every set, in the order of `set_ids`."""
        return self.target_.decide(self.raw(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return Harrell's concordance index; y as in `fit`."""
        sets, labels, _ = self._labelled(X, as_columns(y), None)
        labels = labels.astype(np.float64)
        check_times(labels, sets)
        return self.target_.measure(labels, self.raw(sets))["concordance"]


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
        return y.astype(float)
    array = np.asarray(y)
    if array.dtype.names is not None:
        array = _fields(array)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"y has shape {array.shape}; expected a time and an event per set")
    return array


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
