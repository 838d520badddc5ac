"""Distillation: learn a whole set function from a teacher that labels subsets.

A data set labels whole sets only. A teacher, any predictor over sets, can label subsets of them and
subsets of the union of two sets. A network that learns from these keeps exact added values, and
sees sizes that no set of the data has. The stock teacher is the mean of a random forest and
gradient boosting on pooled statistics, which is far ahead of networks on some small data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.learn.problem import Problem
from capnets.learn.target import Target
from capnets.sets import Array, Sets, offsets_of

__all__ = ["SUBSETS", "Teacher", "distill", "pooled", "pooled_teacher"]

#: Subsets that the teacher labels per training set; half of them from the union with another set.
SUBSETS = 20

#: From sets to amounts (sets x outputs), probabilities of classes, or probabilities of labels.
Teacher = Callable[[Sets], Array]


def distill(
    problem: Problem, teacher: Teacher, *, subsets: int = SUBSETS, seed: int = 0
) -> Problem:
    """Return the problem with additional training sets that a teacher labels.

    Parameters
    ----------
    problem
        What is to be learned; its own sets keep their labels.
    teacher
        Predictor over sets.
    subsets
        Number of additional sets per training set.
    seed
        Seed of the subsets.
    """
    if problem.train.covariates is not None:
        raise InputError("teacher: sets with covariates cannot be taught; leave one of both out")
    generator = np.random.default_rng(seed)
    drawn = _subsets(problem.train, subsets, generator)
    y = _labels(problem.target, np.asarray(teacher(drawn)), len(drawn), generator)
    own = np.asarray(problem.train.y).reshape(len(problem.train), -1)
    labels = np.concatenate([own, y]).astype(np.float32)
    train = Sets(
        problem.train.instances,
        np.concatenate([problem.train.index, drawn.index]),
        offsets_of(np.concatenate([problem.train.sizes, drawn.sizes])),
        labels[:, 0] if np.asarray(problem.train.y).ndim == 1 else labels,
        feature_names=problem.train.feature_names,
    )
    origin = {**problem.origin, "teacher": {"subsets": subsets, "seed": seed}}
    return replace(problem, train=train, groups=None, origin=origin)


def _subsets(sets: Sets, count: int, generator: np.random.Generator) -> Sets:
    """Draw subsets of every set, and of its union with another one, of uniform sizes."""
    chosen: list[Array] = []
    for k in range(len(sets)):
        rows = sets.rows(k)
        for number in range(count):
            pool = rows
            if number % 2:
                pool = np.concatenate([rows, sets.rows(int(generator.integers(len(sets))))])
            size = int(generator.integers(1, len(pool) + 1))
            chosen.append(generator.permutation(pool)[:size])
    offsets = offsets_of([len(rows) for rows in chosen])
    return Sets(sets.instances, np.concatenate(chosen), offsets, feature_names=sets.feature_names)


def _labels(target: Target, found: Array, count: int, generator: np.random.Generator) -> Array:
    """Convert predictions of the teacher to labels, one row per set."""
    found = found.reshape(len(found), -1) if found.ndim else found
    width = len(target.classes) if target.kind == "class" else target.outputs
    if found.shape not in ((count, width), (count, 1 if width == 2 else width)):
        raise InputError(
            f"the teacher gives an array of shape {found.shape} for {count} sets; "
            f"expected {count} x {width}"
        )
    if not np.isfinite(found).all():
        raise InputError("the teacher gives predictions that are not finite numbers")
    if target.kind == "class" and target.outputs == 1:
        return found[:, -1:]  # the logistic loss learns from probabilities
    if target.kind == "class":  # a softmax needs classes: draw them
        edges = np.cumsum(found, axis=1) / found.sum(axis=1, keepdims=True)
        drawn = (generator.random((count, 1)) > edges).sum(axis=1, keepdims=True)
        numbers: Array = np.minimum(drawn, width - 1)
        return numbers
    return found


def pooled(sets: Sets) -> Array:
    """Return mean, maximum and minimum of every feature, and the size of every set."""
    x = np.asarray(sets.instances[sets.index], dtype=np.float32).reshape(len(sets.index), -1)
    starts = sets.offsets[:-1]
    means = np.add.reduceat(x, starts, axis=0) / sets.sizes[:, None]
    largest, smallest = (f.reduceat(x, starts, axis=0) for f in (np.maximum, np.minimum))
    return np.concatenate([means, largest, smallest, sets.sizes[:, None]], axis=1)


def pooled_teacher(problem: Problem, *, seed: int = 0) -> Teacher:
    """Fit the stock teacher: the mean of a forest and of gradient boosting on pooled statistics."""
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

    target, x = problem.target, pooled(problem.train)
    y, weights = np.asarray(problem.train.y), problem.train.weights
    several = y.ndim == 2 and y.shape[1] > 1
    y = y if several else y.reshape(len(x))
    kinds: tuple[Any, Any, Any]
    if target.classifies:
        kinds = (RandomForestClassifier, HistGradientBoostingClassifier, MultiOutputClassifier)
    else:
        kinds = (RandomForestRegressor, HistGradientBoostingRegressor, MultiOutputRegressor)
    forest = kinds[0](n_estimators=200, min_samples_leaf=2, random_state=seed)
    boosting = kinds[1](max_iter=100, learning_rate=0.05, random_state=seed)
    members = [forest, kinds[2](boosting) if several else boosting]
    for member in members:
        member.fit(x, y, sample_weight=weights)

    def predict(sets: Sets) -> Array:
        features = pooled(sets)
        mean: Array = np.mean([_predict(m, features, target) for m in members], axis=0)
        return mean

    return predict


def _predict(member: Any, features: Array, target: Target) -> Array:
    if not target.classifies:
        return np.asarray(member.predict(features)).reshape(len(features), -1)
    found = member.predict_proba(features)
    if target.kind == "labels":
        return np.stack([share[:, 1] for share in found], axis=1)
    shares = np.zeros((len(features), len(target.classes)))
    shares[:, member.classes_.astype(np.int64)] = found
    return shares
