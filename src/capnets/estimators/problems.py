"""Problems from tables, arrays and `Sets`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from capnets.errors import InputError
from capnets.estimators import targets
from capnets.estimators.inputs import read
from capnets.estimators.per_set import labels_of, weighted, weights_of
from capnets.estimators.targets import as_counts
from capnets.estimators.times import as_survival
from capnets.ingest import Columns, FeatureFolder, Schema, SetData, check_leakage
from capnets.ingest.addresses import is_address
from capnets.ingest.kinds import looks_like_date
from capnets.learn import Problem, Target
from capnets.sets import Array

__all__ = ["data_problem", "file_problem"]

#: Whole numbers with at most this many distinct values are reported as possible classes.
FEW = 10
#: Measures on a fifth of fewer sets than this are mostly chance.
MIN_SETS = 20


def data_problem(
    X: Any,
    y: Any = None,
    *,
    columns: Columns | str | None = None,
    classify: bool = False,
    sample_weight: Any = None,
    class_weight: Any = None,
    folder: Path | None = None,
) -> Problem:
    """Return the problem of learning y from X.

    Parameters
    ----------
    X
        A list of 2-D arrays, `Sets`, a table, a file, or a `FeatureFolder`.
    y
        Labels, if X does not have them; see `SetEstimator.fit`.
    columns
        Meaning of the columns of a table, or the name of its set column.
    classify
        Whether labels are classes.
    sample_weight, class_weight
        Weights of sets; weights of classes as in scikit-learn.
    folder
        Keep the instances of a table in this folder and map them, instead of holding them in
        memory: a file may be larger than memory.
    """
    data = read(X, columns, labels=y is None, classify=classify, learning=True, folder=folder)
    return _problem(
        data, X, y, classify=classify, sample_weight=sample_weight, class_weight=class_weight
    )


def file_problem(
    file: str | FeatureFolder,
    columns: Columns | None,
    *,
    classify: bool | None = None,
    survival: bool = False,
    counts: bool = False,
    folder: Path | None = None,
) -> tuple[Problem, str]:
    """Return the problem of a file, and a summary of the data and of how the target is read.

    Parameters
    ----------
    file
        A table, an .npz file or a feature folder with labels.
    columns
        Meaning of the columns of a table.
    classify
        Whether labels are classes. None decides by their type and values: text, Booleans and
        targets of 0 and 1 are classes, other numbers are amounts.
    survival
        Whether the two targets are a time and an event.
    counts
        Whether targets are counts, to be learned with a Poisson loss.
    folder
        As in `data_problem`.
    """
    if isinstance(file, str) and not is_address(file) and not Path(file).exists():
        task = "" if Path(file).suffix else f"; set tasks: `capnets task train {file}`"
        raise InputError(f"{file}: there is no such file{task}")
    data = read(file, columns, labels=True, classify=bool(classify), learning=True, folder=folder)
    named = classify is None and data.classes is not None
    problem = _problem(data, file, classify=bool(classify) or named)
    if survival:
        problem = as_survival(problem)
        note = _events(problem)
    elif counts and not named and not classify:
        problem = as_counts(problem)
        note = f"Predicting a count, from 0 to {np.asarray(problem.train.y).max():g}, as requested."
    else:
        problem, note = _meant(problem, columns, classify=classify, named=named)
    if len(problem.train) < MIN_SETS:
        note += (
            f"\nwarning: fewer than {MIN_SETS} sets; a test on a share of them is mostly chance."
        )
    return problem, f"{data.summary()}\n{note}"


def _meant(
    problem: Problem, columns: Columns | None, *, classify: bool | None, named: bool
) -> tuple[Problem, str]:
    """Return the problem with its target as classes if it holds 0 and 1; describe the target."""
    target, y = problem.target, np.asarray(problem.train.y)
    what = "target" if columns is None else ", ".join(repr(t) for t in columns.target)
    if classify is not None:
        reason = "as requested"
    elif named:
        reason = f"{what} holds text or Booleans{_dates(target)}"
    elif np.isin(y, (0, 1)).all() and len(np.unique(y)) == 2:
        problem, target = _as_classes(problem)
        reason = f"{what} holds 0 and 1 only; --regress predicts an amount"
    else:
        reason = f"{what} holds numbers{_few(y)}; --classify predicts classes"
    kinds = {"amount": "an amount", "class": "classes", "labels": "labels, each present or absent"}
    shown = f" ({', '.join(map(str, target.classes[:6]))})" if target.classes else ""
    return problem, f"Predicting {kinds[target.kind]}{shown}: {reason}."


def _events(problem: Problem) -> str:
    time, event = np.asarray(problem.train.y).T
    return (
        f"Predicting log-hazards: {int(event.sum()):,} events, {int((event == 0).sum()):,} sets "
        f"censored, times from {time.min():g} to {time.max():g}."
    )


def _problem(
    data: SetData,
    X: Any,
    y: Any = None,
    *,
    classify: bool,
    sample_weight: Any = None,
    class_weight: Any = None,
) -> Problem:
    make = targets.classes if classify else targets.amounts
    numbers, target = make(labels_of(y, data), data if y is None else None)
    weights = [data.sets.weights, _class_weights(class_weight, numbers, target)]
    if sample_weight is not None:
        weights.append(weights_of(sample_weight, data))
    sets = replace(data.sets, y=numbers.astype(np.float32), weights=None)
    sets = weighted(sets, *weights)
    sets.check_finite()
    features = None if data.schema is None else data.schema.feature_columns
    check_leakage(sets, features, label=getattr(y, "name", None))
    if data.schema is not None:
        target = replace(target, names=data.schema.columns.target)
    source = str(X) if isinstance(X, str | Path | FeatureFolder) else type(X).__name__
    problem = Problem(
        sets,
        target,
        groups=data.groups,
        schema=_schema(data, target),
        origin={"source": source},
    )
    return problem if data.splits is None else _divided(problem, data.splits)


def _divided(problem: Problem, splits: Array) -> Problem:
    """Return the problem with the validation and test sets that the table names."""
    parts = {name: np.flatnonzero(splits == name) for name in ("train", "valid", "test")}
    if not len(parts["train"]):
        raise InputError("the split column assigns no set to 'train'")
    whole = replace(problem.train, weights=None)
    valid, test = (whole.subset(parts[n]) if len(parts[n]) else None for n in ("valid", "test"))
    tests = {} if test is None else {"test": test}
    return replace(problem.subset(parts["train"]), valid=valid, tests=tests)


def _dates(target: Target) -> str:
    """Say how to predict a time where the classes are dates written as text."""
    if not target.classes or not all(map(looks_like_date, map(str, target.classes))):
        return ""
    return " that look like dates, each a class of its own; to predict a time, write numbers (days)"


def _few(y: Array) -> str:
    values = np.unique(y)
    if len(values) > FEW or (values % 1 != 0).any():
        return ""
    return f" with {len(values)} distinct whole values, {values[0]:g} to {values[-1]:g}"


def _as_classes(problem: Problem) -> tuple[Problem, Target]:
    """Return a problem whose amounts, all 0 or 1, are classes or labels."""
    y, names = np.asarray(problem.train.y), problem.target.names
    numbers, target = targets.classes(y, None)
    target = replace(target, names=names)
    train = replace(problem.train, y=numbers.astype(np.float32))
    schema = problem.schema
    if schema is not None and target.classes:
        target = replace(target, classes=(0, 1))
        schema = replace(schema, classes=(0, 1))
    return replace(problem, train=train, target=target, schema=schema), target


def _schema(data: SetData, target: Target) -> Schema | None:
    """Return how later tables are read; their target may name the classes that y named here."""
    schema = data.schema
    if schema is None or schema.classes or len(schema.columns.target) != 1:
        return schema
    return replace(schema, classes=target.classes) if target.classes else schema


def _class_weights(class_weight: Any, numbers: Array, target: Target) -> Array | None:
    if class_weight is None:
        return None
    # Class weights are given by the names of the classes.
    labels = np.array(target.classes)[numbers.astype(np.int64)] if target.classes else numbers
    try:
        weights: Array = compute_sample_weight(class_weight, labels)
    except ValueError as error:
        raise InputError(f"class_weight {class_weight!r}: {error}") from error
    return weights
