"""Predict hazards from times until an event, some of them censored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.times import as_columns, as_survival, check_times
from capnets.explain.survival import RiskGroups
from capnets.learn import Plan, Problem
from capnets.sets import Array, Sets

__all__ = ["SetSurvival"]


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
        return as_survival(super().problem(X, as_columns(y), sample_weight, folder=folder))

    def _distilled(self, problem: Problem, plan: Plan, teacher: Any) -> tuple[Problem, Plan]:
        raise InputError("teacher: SetSurvival learns from times and events only; leave it out")

    def predict(self, X: Any) -> Array:
        """Return the log-hazard of every set, in the order of `set_ids`."""
        return self.target_.decide(self.raw(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return Harrell's concordance index; y as in `fit`."""
        sets, labels = self._timed(X, y)
        return self.target_.measure(labels, self.raw(sets))["concordance"]

    def risk_groups(self, X: Any, y: Any = None, *, groups: int = 3) -> RiskGroups:
        """Divide sets by predicted risk; compare the groups by Kaplan-Meier curves.

        `figure` and `to_html` of the result draw the curves. y as in `fit`; use sets that were not
        trained on.
        """
        sets, labels = self._timed(X, y)
        return RiskGroups.divide(self.predict(sets), labels[:, 0], labels[:, 1], groups=groups)

    def _timed(self, X: Any, y: Any) -> tuple[Sets, Array]:
        """Return the sets of X with their times and events."""
        sets, labels, _ = self._labelled(X, as_columns(y), None)
        labels = labels.astype(np.float64)
        check_times(labels, sets)
        return sets, labels
