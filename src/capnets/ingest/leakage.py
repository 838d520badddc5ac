"""Detect features that leak the label.

A label column among the features makes every score perfect and every prediction useless. Only a
feature that is constant within each set can be such a copy, so most columns are ruled out quickly.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from capnets.errors import InputError, LeakageWarning
from capnets.sets import Array, Sets
from capnets.sets.mapped import release

__all__ = ["check_leakage"]

#: Fewer sets than this agree by chance.
MIN_SETS = 10
#: With fewer distinct labels than this, a legitimate feature (sex, site) may equal the label.
MIN_LABELS = 5
#: Relative residual below which two float32 columns are multiples of each other.
TOLERANCE = 1e-5
#: Instances that are compared first, which rule out most columns, and numbers of later blocks.
ROWS, NUMBERS = 64, 2**20


def check_leakage(
    sets: Sets, columns: Sequence[str] | None = None, *, label: str | None = None
) -> None:
    """Refuse features that copy a label and warn of those that determine it one to one.

    A feature that equals a label up to scale and offset raises an error if there are at least
    `MIN_SETS` sets and `MIN_LABELS` distinct labels. A `LeakageWarning` names features that are
    monotone in the label, features that determine a repeated label one to one, and copies of
    labels with fewer distinct values, which a legitimate feature may equal.

    Parameters
    ----------
    sets
        The training sets with their labels.
    columns
        The table column of each feature; the indicators of a category share one. By default the
        feature names.
    label
        Name of the label, if it has one. A copy with this name is refused however few sets exist.
    """
    if sets.y is None or len(sets) < 2:
        return
    constant, values = _set_values(sets)
    names = columns or sets.feature_names or [f"feature {k}" for k in range(len(constant))]
    described = sets.feature_names or names
    if len(names) != len(constant):  # features with several axes, such as images
        return
    labels = np.asarray(sets.y, dtype=np.float64).reshape(len(sets), -1)
    single = bool((sets.sizes == 1).all())
    inputs: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        inputs.setdefault(name, []).append(k)
    for name, places in inputs.items():
        if not constant[places].all():
            continue
        feature = _codes(values[:, places], [str(described[k]) for k in places])
        for y in labels.T:
            _judge(name, feature, y, kind="feature", named=name == label, single=single)
    for k, column in enumerate(() if sets.covariates is None else sets.covariates.T):
        name = f"covariate {k}" if sets.covariate_names is None else sets.covariate_names[k]
        for y in labels.T:
            values = np.asarray(column, dtype=np.float64)
            _judge(name, values, y, kind="covariate", named=name == label, single=False)


def _judge(name: str, feature: Array, y: Array, *, kind: str, named: bool, single: bool) -> None:
    numbered = name.startswith(f"{kind} ")
    what = name if numbered else f"{kind} {name!r}"
    target = "" if numbered else f"name it as the target, Columns(set=…, target={name!r}), or "
    found, count = len(np.unique(y)), len(y)
    if found < 2 or len(np.unique(feature)) < 2:
        return
    if single and found < MIN_LABELS:  # every feature of a set of one instance is constant in it
        return
    fit = _affine(feature, y)
    if fit is not None and (named or (count >= MIN_SETS and found >= MIN_LABELS and not single)):
        raise InputError(
            f"{what} is a copy of the label ({fit}), and a network would learn nothing else; "
            f"{target}leave it out"
        )
    pairs = len(np.unique(np.stack([feature, y]), axis=1).T)
    one_to_one = pairs == found == len(np.unique(feature))
    if count >= MIN_SETS and one_to_one and (count >= 3 * found or _monotone(feature, y)):
        warnings.warn(
            f"{what} determines the label of every training set one to one"
            f"{f' ({fit})' if fit else ''}. If it is the label in another form, leave it out: "
            "predictions would only repeat it.",
            LeakageWarning,
            stacklevel=4,
        )


def _set_values(sets: Sets) -> tuple[Array, Array]:
    """Return which features are constant within every set, and the features of first instances."""
    instances = sets.instances.reshape(len(sets.instances), -1)
    constant = np.ones(instances.shape[1], dtype=bool)
    firsts = sets.index[sets.offsets[:-1]]
    start, step = 0, ROWS
    while start < len(sets.index) and (kept := np.flatnonzero(constant)).size:
        rows = np.arange(start, min(start + step, len(sets.index)))
        begins = firsts[np.searchsorted(sets.offsets, rows, "right") - 1]
        same = instances[np.ix_(sets.index[rows], kept)] == instances[np.ix_(begins, kept)]
        constant[kept] = same.all(axis=0)
        start += step
        step = max(ROWS, NUMBERS // len(kept))
    release(sets.instances)
    values = np.zeros((len(sets), len(constant)))
    values[:, constant] = instances[np.ix_(firsts, np.flatnonzero(constant))]
    return constant, values


def _codes(values: Array, names: Sequence[str]) -> Array:
    """Return one number per set: the feature itself, or the number of its category.

    A category that is called by a number (`worth=2.5`) has that number.
    """
    if values.shape[1] == 1:
        return values[:, 0]
    chosen = values.argmax(axis=1)
    try:
        numbers = np.array([float(name.rpartition("=")[2]) for name in names])
    except ValueError:
        numbers = np.arange(len(names), dtype=np.float64)
    missing = min(numbers.min() - 1, -1)
    codes: Array = np.where(values.any(axis=1), numbers[chosen], missing)
    return codes if np.isfinite(codes).all() else chosen.astype(np.float64)


def _affine(feature: Array, y: Array) -> str | None:
    """Return the label as a multiple of the feature plus an offset, or None if it is not one."""
    low, high = int(np.argmin(feature)), int(np.argmax(feature))
    scale = (y[high] - y[low]) / (feature[high] - feature[low])
    residual = np.abs(y - (y[low] + scale * (feature - feature[low]))).max()
    rounding = np.finfo(np.float32).eps * max(np.abs(y).max(), np.abs(scale * feature).max())
    if scale == 0 or residual > TOLERANCE * (y.max() - y.min()) + 4 * rounding:
        return None
    offset = y[low] - scale * feature[low]
    if abs(scale - 1) < TOLERANCE and abs(offset) <= TOLERANCE * np.abs(y).max():
        return "the same numbers"
    return f"label = {scale:.4g} * feature {'-' if offset < 0 else '+'} {abs(offset):.4g}"


def _monotone(feature: Array, y: Array) -> bool:
    """Return whether the label strictly rises or falls with the feature."""
    steps = np.diff(y[np.argsort(feature, kind="stable")])
    return len(np.unique(y)) >= MIN_SETS and bool((steps >= 0).all() or (steps <= 0).all())
