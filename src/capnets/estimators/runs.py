"""From a table to a finished run, and back: what the command line does with files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.classification import SetClassifier
from capnets.estimators.inputs import Given
from capnets.estimators.regression import SetRegressor
from capnets.estimators.scoring import quality
from capnets.ingest import hold_out
from capnets.ingest.encode import as_text
from capnets.models import parameters
from capnets.runs import Run
from capnets.sets import Sets

__all__ = ["TEST_SHARE", "evaluate_run", "held_out", "load_estimator", "train_run"]

#: Of the sets of a table: kept to measure the result.
TEST_SHARE = 0.2

Progress = Callable[[dict[str, Any]], None]


def train_run(
    folder: str | Path,
    X: Any,
    estimator: SetEstimator,
    *,
    test_share: float = TEST_SHARE,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Train an estimator on a table into a run folder; a share of the sets measures the result.

    Parameters
    ----------
    folder
        The run.
    X
        A table that has its targets, or .npz, or `Sets` with labels.
    estimator
        What to train; afterwards it is fitted.
    test_share
        Of the sets (of the groups, if the table has a group column; of every class): kept from
        training and measured at the end. 0 trains on all of them and measures nothing.
    resume, force
        Go on with an unfinished run; replace a run that is there.
    progress
        Called after every epoch.
    """
    # The instances of a file are mapped, not held: it may be larger than memory.
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "sets" if isinstance(X, str | Path) else None
        given = estimator._given(X, None, folder=kept)
        sets = estimator._plan(given, None)
        test = None
        if test_share:
            given, test = held_out(estimator, given, sets, test_share)
            sets = estimator._plan(given, None)
        about = {"source": str(X) if isinstance(X, str | Path) else type(X).__name__}
        config = estimator._config(**about, sets=len(sets), test_share=test_share)
        config.model.build(config.seed)  # what cannot be built is refused before there is a folder
        run = Run.create(folder, config, resume=resume, force=force)
        with run.lock():
            if run.finished:
                return run
            began = time.perf_counter()
            estimator._learn(sets, given, checkpoint=run.checkpoint, progress=progress)
            run.write_history(estimator.history_)
            run.write_weights(estimator.model_)
            result: dict[str, Any] = {"train": quality(estimator, sets)}
            if test is not None:
                result["test"] = quality(estimator, test)
            run.finish(
                {
                    **result,
                    "train_sets": len(sets),
                    "test_sets": 0 if test is None else len(test),
                    "parameters": parameters(estimator.model_),
                    "epochs": len(estimator.history_),
                    "total_seconds": round(time.perf_counter() - began, 1),
                }
            )
            for path in run.folder.glob("checkpoint*.safetensors"):
                path.unlink()
        return run


def load_estimator(folder: str | Path) -> SetRegressor | SetClassifier:
    """The fitted estimator of a run that was trained on a table."""
    run = Run(folder)
    kinds = {"SetRegressor": SetRegressor, "SetClassifier": SetClassifier}
    kind = kinds.get(run.config.data.get("estimator", ""))
    if kind is None:
        raise InputError(f"{folder} was trained on a set task, not on a table of your own")
    return kind.load(folder)


def evaluate_run(folder: str | Path, X: Any) -> dict[str, float]:
    """The quality of a run on a labelled table."""
    estimator = load_estimator(folder)
    given = estimator._read(X, labels=True)
    if given.sets.y is None:
        raise InputError(f"{X} has no labels to compare with")
    return quality(estimator, _numbered(estimator, given))


def _numbered(estimator: SetEstimator, given: Given) -> Sets:
    """Labels as the run numbers them; those of a table are numbered by its schema already."""
    sets = given.sets
    if not isinstance(estimator, SetClassifier) or given.schema or estimator.multilabel_:
        return sets
    y = np.asarray(sets.y).reshape(len(sets))
    if given.classes is not None:
        y = np.array(given.classes)[y.astype(np.int64)]
    strange = ~np.isin(y, estimator.classes_)
    if strange.any():
        label = as_text(y[strange][0].item())
        raise InputError(
            f"set {int(np.argmax(strange))} has the label {label}, no known class "
            f"({', '.join(map(str, estimator.classes_))})"
        )
    return replace(sets, y=np.searchsorted(estimator.classes_, y).astype(np.float32))


def held_out(
    estimator: SetEstimator, given: Given, sets: Sets, share: float = TEST_SHARE
) -> tuple[Given, Sets]:
    """What stays for training, and labelled sets to measure the result on."""
    numbered = replace(given.sets, ids=np.arange(len(sets)))
    seed = estimator.seed_
    strata = estimator._strata(sets)
    stays, held = hold_out(numbered, share, seed=seed, groups=given.groups, stratify=strata)
    assert stays.ids is not None
    assert held.ids is not None
    groups = None if given.groups is None else given.groups[stays.ids]
    # What is measured counts every set alike.
    test = replace(sets.subset(held.ids), weights=None)
    # Classes stay numbered as they are: what stays may lack one of them.
    classes = given.classes
    if isinstance(estimator, SetClassifier) and not estimator.multilabel_:
        classes = tuple(estimator.classes_.tolist())
    left = replace(given.sets, y=sets.y).subset(stays.ids)
    return replace(given, sets=left, groups=groups, classes=classes), test
