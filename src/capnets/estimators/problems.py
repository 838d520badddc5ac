"""Problems from tables, arrays and `Sets`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from capnets.errors import InputError
from capnets.estimators import targets
from capnets.estimators.inputs import Given, read
from capnets.estimators.per_set import labels_of, weighted, weights_of
from capnets.ingest import Columns, Schema, check_leakage
from capnets.learn import Problem, Target
from capnets.sets import Array

__all__ = ["data_problem"]


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
        A list of 2-D arrays, `Sets`, a table, or a file.
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
    given = read(X, columns, labels=y is None, classify=classify, learning=True, folder=folder)
    make = targets.classes if classify else targets.amounts
    numbers, target = make(labels_of(y, given), given if y is None else None)
    weights = [given.sets.weights, _class_weights(class_weight, numbers, target)]
    if sample_weight is not None:
        weights.append(weights_of(sample_weight, given))
    sets = replace(given.sets, y=numbers.astype(np.float32), weights=None)
    sets = weighted(sets, *weights)
    sets.check_finite()
    features = None if given.schema is None else given.schema.feature_columns
    check_leakage(sets, features, label=getattr(y, "name", None))
    if given.schema is not None:
        target = replace(target, names=given.schema.columns.target)
    source = str(X) if isinstance(X, str | Path) else type(X).__name__
    return Problem(
        sets,
        target,
        groups=given.groups,
        schema=_schema(given, target),
        origin={"source": source},
    )


def _schema(given: Given, target: Target) -> Schema | None:
    """Return how later tables are read; their target may name the classes that y named here."""
    schema = given.schema
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
