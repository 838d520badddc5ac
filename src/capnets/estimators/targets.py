"""Turn labels into numbers and describe them: amounts, classes, or several labels at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.per_set import named
from capnets.ingest import SetData
from capnets.learn import Problem, Target
from capnets.sets import Array

__all__ = ["amounts", "as_counts", "classes"]

#: Amounts beyond this, or all below its inverse, have squares that float32 cannot hold.
LARGEST = 1e18
#: Smallest spread of amounts, in steps of float32; below it, rounding shows.
STEPS = 8


def amounts(labels: Array, data: SetData | None) -> tuple[Array, Target]:
    """Return labels as numbers, and their description.

    `data` is the data that the labels come from, if they come from X itself.
    """
    names = _target_columns(data)
    if data is not None and data.classes is not None:
        where = f"column {names[0]!r}" if names else "y"
        shown = ", ".join(map(str, data.classes[:5]))
        raise InputError(
            f"{where} names classes ({shown}), not amounts; use SetClassifier, "
            "or turn them into numbers"
        )
    try:
        labels = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y holds something that is not a number: {error}") from error
    if labels.ndim not in (1, 2):
        raise InputError(f"y has shape {labels.shape}; expected one label, or a row, per set")
    _check_unit(labels, names)
    _check_precision(labels, names)
    flat = labels.ndim == 1
    outputs = 1 if flat else labels.shape[1]
    return labels, Target("amount", outputs, names=names, flat=flat)


def as_counts(problem: Problem) -> Problem:
    """Return a problem of amounts as one of counts, whose logarithms are learned."""
    y = np.asarray(problem.train.y).reshape(len(problem.train), -1)
    if (y < 0).any():
        k, output = np.argwhere(y < 0)[0]
        raise InputError(
            f"the label of {named(problem.train, int(k))} is {y[k, output]:g}; the Poisson loss "
            "learns counts, which are not negative"
        )
    if not y.any(axis=0).all():
        raise InputError("all counts are 0: their logarithm cannot be learned")
    return replace(problem, target=replace(problem.target, kind="count"))


def _check_unit(labels: Array, names: tuple[str, ...]) -> None:
    """Refuse amounts that are too large or too small for float32."""
    for k, column in enumerate(np.abs(labels.reshape(len(labels), -1)).T):
        largest = float(np.max(column, initial=0, where=np.isfinite(column)))
        if largest and not 1 / LARGEST <= largest <= LARGEST:
            where = f"column {names[k]!r}" if names else "y"
            kind = "large" if largest > 1 else "small"
            raise InputError(
                f"{where} has labels of up to {largest:.3g}, too {kind} to learn in float32; use "
                f"another unit: multiply them by 1e{-round(np.log10(largest)):+d}"
            )


def classes(labels: Array, data: SetData | None) -> tuple[Array, Target]:
    """Return labels as numbers of classes, or rows of 0 and 1, and their description."""
    names = _target_columns(data)
    if labels.ndim > 2:
        raise InputError(f"y has shape {labels.shape}; expected one label, or a row, per set")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        k = int(np.argwhere(~np.isfinite(labels))[0][0])
        raise InputError(f"the label of set {k} is {labels[k]}; give it one or drop the set")
    if labels.ndim == 2 and labels.shape[1] > 1:
        return _several(labels, names)
    known = None if data is None else data.classes
    if known is None:
        found, numbers = _distinct(labels.reshape(-1))
    else:
        found, numbers = np.array(known), labels.reshape(-1)  # numbered already
    if len(found) < 2:
        raise InputError(f"y has one class only ({found[0]}); nothing can be learned from it")
    if found.dtype.kind == "f" and (found % 1 != 0).any():
        raise InputError(
            f"y has fractions such as {found[found % 1 != 0][0]}: these are "
            "continuous amounts, not classes; use SetRegressor"
        )
    return numbers.astype(np.float64), Target.of_classes(found, names)


def _several(labels: Array, names: tuple[str, ...]) -> tuple[Array, Target]:
    if not np.isin(labels, (0, 1)).all():
        raise InputError("several labels at once are rows of 0 and 1; y has other values")
    constant = np.flatnonzero((labels == labels[0]).all(axis=0))
    if len(constant):
        label = repr(names[constant[0]]) if names else constant[0]
        raise InputError(f"label {label} has one class only; nothing can be learned from it")
    target = Target("labels", labels.shape[1], names=names, flat=False)
    return labels.astype(np.float64), target


def _target_columns(data: SetData | None) -> tuple[str, ...]:
    return () if data is None or data.schema is None else data.schema.columns.target


def _distinct(labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes, and the number of each label among them."""
    try:
        found, numbers = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise InputError(
            f"y mixes classes of several types ({', '.join(kinds)}); make all of them text or all "
            "numbers"
        ) from error
    return found, numbers


def _check_precision(labels: Array, names: tuple[str, ...]) -> None:
    """Refuse amounts so far from zero that float32 rounds away their differences.

    Labels of a table or of `Sets` are rounded already: distant ones may have become all equal.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest, spread = np.abs(labels).max(axis=0), labels.std(axis=0)
        step = np.spacing(largest.astype(np.float32))
        alike = spread <= STEPS * np.spacing(largest)  # but for the rounding of float64
        lost: Any = np.where(alike, step > 1, STEPS * step > spread)
    if lost.any():
        k = int(np.argmax(lost))
        shown = labels[0] if labels.ndim == 1 else labels[0, k]
        where = "y" if labels.ndim == 1 else f"output {k} of y"
        where = f"column {names[k]!r}" if names else where
        raise InputError(
            f"{where} has amounts such as {shown:.12g}, far from 0 but near each other: in 32 bits "
            "they cannot be told apart; subtract a constant from all of them, such as their mean"
        )
