"""Folds of whole sets: every class and every label in equal shares, groups in one piece."""

from __future__ import annotations

import numpy as np

from capnets.errors import InputError
from capnets.estimators import SetClassifier
from capnets.estimators.base import SetEstimator
from capnets.sets import Array, Sets

__all__ = ["FOLDS", "Parts", "make_folds"]

FOLDS = 3

#: Training and test sets of every fold.
Parts = list[tuple[Array, Array]]


def make_folds(estimator: SetEstimator, sets: Sets, *, groups: Array | None, seed: int) -> Parts:
    """Training and test sets of every fold.

    Parameters
    ----------
    estimator
        One that has planned for the sets: it knows what their labels mean.
    sets
        With labels as numbers.
    groups
        A group per set; none is cut.
    seed
        Draws the folds.
    """
    shares = _memberships(estimator, sets)
    one_each = isinstance(estimator, SetClassifier) and not estimator.multilabel_
    _check_enough(len(sets), shares if one_each else None, groups)
    units = np.arange(len(sets)) if groups is None else np.unique(groups, return_inverse=True)[1]
    fold = _spread(shares, units, np.random.default_rng(seed))[units]
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]
    if one_each and not all(shares[train].any(axis=0).all() for train, _ in parts):
        raise InputError(
            "a class is in so few groups that a fold has none of it to train on; "
            "tune without the group column, or give more groups"
        )
    return parts


def _memberships(estimator: SetEstimator, sets: Sets) -> Array:
    """Sets x what they may belong to: a class, or having and not having a label."""
    y = np.asarray(sets.y)
    if not isinstance(estimator, SetClassifier):
        return np.zeros((len(sets), 0), dtype=np.int64)
    if estimator.multilabel_:
        return np.concatenate([y > 0.5, y <= 0.5], axis=1).astype(np.int64)
    classes: Array = y.reshape(-1, 1) == np.arange(len(estimator.classes_))
    return classes.astype(np.int64)


def _check_enough(count: int, classes: Array | None, groups: Array | None) -> None:
    amounts = {"sets": count}
    if classes is not None:
        amounts["sets of the rarest class"] = int(classes.sum(axis=0).min())
    if groups is not None:
        amounts["groups"] = len(np.unique(groups))
    for what, amount in amounts.items():
        if amount < FOLDS:
            raise InputError(f"there are {amount} {what} to train on, fewer than the {FOLDS} folds")


def _spread(shares: Array, units: Array, generator: np.random.Generator) -> Array:
    """The fold of every unit (a set, or a group of sets).

    What the fewest units belong to is dealt out first, each unit to the fold that lacks most of it
    (iterative stratification; Sechidis, Tsoumakas and Vlahavas, ECML 2011): what is rare could not
    be put right later. Being a set is the last thing to belong to, so folds are equally large.
    """
    counts = np.zeros((units.max() + 1, shares.shape[1] + 1))
    np.add.at(counts, units, np.column_stack([shares, np.ones(len(shares))]))
    lacking = np.tile(counts.sum(axis=0) / FOLDS, (FOLDS, 1))
    fold = np.full(len(counts), -1)
    drawn = generator.permutation(len(counts))
    while (left := drawn[fold[drawn] < 0]).size:
        having = (counts[left] > 0).sum(axis=0)
        rarest = int(np.argmin(np.where(having > 0, having, len(counts) + 1)))
        members = left[counts[left, rarest] > 0]
        # Large groups first: small ones make up for them.
        for unit in members[np.argsort(-counts[members, rarest], kind="stable")]:
            ties = generator.random(FOLDS)
            best = np.lexsort((ties, lacking[:, -1], lacking[:, rarest]))[-1]
            fold[unit] = best
            lacking[best] -= counts[unit]
    return fold
