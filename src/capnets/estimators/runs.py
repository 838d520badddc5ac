"""Load the estimator of a run, and evaluate it on a labelled table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.classification import SetClassifier
from capnets.estimators.regression import SetRegressor
from capnets.estimators.survival import SetSurvival
from capnets.explain.survival import RiskGroups
from capnets.ingest import SetData
from capnets.ingest.encode import as_text
from capnets.learn.measure import measure_sets
from capnets.learn.seen import are_seen
from capnets.runs import Run
from capnets.sets import Sets

__all__ = ["ESTIMATORS", "evaluate_run", "load_estimator", "risk_groups"]


#: Estimators by the name that runs record.
ESTIMATORS: dict[str, type[SetRegressor] | type[SetClassifier] | type[SetSurvival]] = {
    kind.__name__: kind for kind in (SetRegressor, SetClassifier, SetSurvival)
}


def load_estimator(folder: str | Path) -> SetRegressor | SetClassifier | SetSurvival:
    """Load the fitted estimator of a run that was trained on a table."""
    kind = ESTIMATORS.get(Run(folder).config.data.get("estimator", ""))
    if kind is None:
        raise InputError(f"{folder} was trained on a set task, not on a table of your own")
    return kind.load(folder)


def evaluate_run(folder: str | Path, X: Any, *, include_training: bool = False) -> dict[str, float]:
    """Measure the predictions of a run on a labelled table.

    Sets that the run was trained on are left out unless `include_training` is given. The result
    has the number of measured `sets` and of training sets in the table, `trained_on`.
    """
    estimator = load_estimator(folder)
    sets, seen = _unseen(estimator, X, include_training)
    found = measure_sets(estimator.model_, sets, estimator.target_, orders=estimator.n_orders_)
    if estimator.plan_.temperature != 1:
        found["temperature"] = estimator.plan_.temperature
    return {**found, "sets": len(sets), "trained_on": seen}


def risk_groups(folder: str | Path, X: Any, *, include_training: bool = False) -> RiskGroups:
    """Divide the sets of a table by the risk that a survival run predicts; as in `evaluate_run`."""
    estimator = load_estimator(folder)
    if not isinstance(estimator, SetSurvival):
        raise InputError(f"{folder} predicts no hazards: curves by risk need times and events")
    sets, _ = _unseen(estimator, X, include_training)
    return estimator.risk_groups(sets, np.asarray(sets.y))


def _unseen(estimator: SetEstimator, X: Any, include_training: bool) -> tuple[Sets, int]:
    """Return labelled sets, without those that were trained on, and the number of those."""
    data = estimator.read(X, labels=True)
    if data.sets.y is None:
        raise InputError(f"{X} has no labels to compare with")
    sets = _numbered(estimator, data)
    estimator.check_sizes(sets)
    seen = are_seen(sets, estimator.training_keys_)
    if include_training:
        return sets, int(seen.sum())
    if seen.all():
        raise InputError(
            f"all {len(sets):,} sets were trained on, so they cannot test the run; "
            "include_training=True (--include-training) measures the training error"
        )
    return sets.subset(~seen), int(seen.sum())


def _numbered(estimator: SetEstimator, data: SetData) -> Sets:
    """Return sets whose labels are numbers of the run's classes.

    Labels of a table are numbered by its schema already.
    """
    sets, target = data.sets, estimator.target_
    if target.kind != "class" or data.schema:
        return sets
    y = np.asarray(sets.y).reshape(len(sets))
    if data.classes is not None:
        y = np.array(data.classes)[y.astype(np.int64)]
    known = np.array(target.classes)
    strange = ~np.isin(y, known)
    if strange.any():
        label = as_text(y[strange][0].item())
        raise InputError(
            f"set {int(np.argmax(strange))} has the label {label}, no known class "
            f"({', '.join(map(str, known))})"
        )
    return replace(sets, y=np.searchsorted(known, y).astype(np.float32))
