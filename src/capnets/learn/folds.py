"""Cross-validation on whole sets: classes in equal shares, groups kept whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from capnets.errors import InputError
from capnets.learn.averaging import mean_prediction
from capnets.learn.plan import Plan
from capnets.learn.problem import Problem
from capnets.learn.train import learn
from capnets.sets import Array
from capnets.sets.orders import Orders

__all__ = ["FOLDS", "Parts", "cross_validate", "make_folds"]

FOLDS = 3

#: Indices of the training and the test sets of every fold.
Parts = list[tuple[Array, Array]]


def cross_validate(
    problem: Problem,
    plan: Plan,
    parts: Parts,
    *,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """Return network outputs for every training set, each from a fold that did not train on it.

    The plan is the same in all folds, so a fold whose training sets lack a class still has its
    output. `progress` is called with the number of finished folds.
    """
    raw = np.full((len(problem.train), plan.model.outputs), np.nan)
    for number, (train, test) in enumerate(parts, 1):
        model, _ = learn(problem.subset(train), plan)
        sets = replace(problem.train.subset(test), weights=None)
        raw[test] = mean_prediction(model, sets, Orders.averaging(plan.orders))
        if progress is not None:
            progress(number)
    return raw


def make_folds(problem: Problem, *, seed: int, count: int = FOLDS) -> Parts:
    """Divide the training sets of a problem into folds.

    Parameters
    ----------
    problem
        The sets, their classes and groups.
    seed
        Seed of the division.
    count
        Number of folds.
    """
    y, target, groups = np.asarray(problem.train.y), problem.target, problem.groups
    members = target.memberships(y)
    one_each = target.kind == "class"
    _check_enough(len(y), members if one_each else None, groups, count)
    units = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    fold = _assign(members, units, np.random.default_rng(seed), count)[units]
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(count)]
    if one_each and not all(members[train].any(axis=0).all() for train, _ in parts):
        raise InputError(
            "a class is in so few groups that a fold has none of it to train on; "
            "leave out the group column, or give more groups"
        )
    return parts


def _check_enough(sets: int, classes: Array | None, groups: Array | None, count: int) -> None:
    amounts = {"sets": sets}
    if classes is not None:
        amounts["sets of the rarest class"] = int(classes.sum(axis=0).min())
    if groups is not None:
        amounts["groups"] = len(np.unique(groups))
    for what, amount in amounts.items():
        if amount < count:
            raise InputError(f"there are {amount} {what} to train on, fewer than the {count} folds")


def _assign(members: Array, units: Array, generator: np.random.Generator, count: int) -> Array:
    """Return the fold of every unit (a set, or a group of sets).

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas, ECML 2011): units of the rarest
    class are dealt out first, each to the fold that lacks most of it. The last "class" is to be a
    set at all, so folds are equally large.
    """
    counts = np.zeros((units.max() + 1, members.shape[1] + 1))
    np.add.at(counts, units, np.column_stack([members, np.ones(len(members))]))
    lacking = np.tile(counts.sum(axis=0) / count, (count, 1))
    fold = np.full(len(counts), -1)
    drawn = generator.permutation(len(counts))
    while (left := drawn[fold[drawn] < 0]).size:
        present = (counts[left] > 0).sum(axis=0)
        rarest = int(np.argmin(np.where(present > 0, present, len(counts) + 1)))
        carriers = left[counts[left, rarest] > 0]
        # Large groups first: small ones even out the folds.
        for unit in carriers[np.argsort(-counts[carriers, rarest], kind="stable")]:
            ties = generator.random(count)
            best = np.lexsort((ties, lacking[:, -1], lacking[:, rarest]))[-1]
            fold[unit] = best
            lacking[best] -= counts[unit]
    return fold
