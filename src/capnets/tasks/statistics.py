"""Summarise set labels: drawn ones and their exact distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capnets.errors import InputError
from capnets.tasks.distributions import Distribution, mixture
from capnets.tasks.functions import ClosedForms
from capnets.tasks.specs import TaskSpec

__all__ = ["Histogram", "Statistics", "expected_labels", "histogram", "statistics"]


@dataclass(frozen=True)
class Statistics:
    """Summary statistics of set labels."""

    count: int
    mean: float
    median: float
    variance: float
    deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class Histogram:
    """Number of labels per bin; bin k covers [start + k width, start + (k + 1) width).

    With `width` 1 every whole-numbered label has its own bin.
    """

    start: int
    width: int
    counts: tuple[int, ...]


def statistics(labels: ArrayLike) -> Statistics:
    """Compute summary statistics of some labels.

    >>> statistics([1.0, 2.0, 6.0])
    Statistics(count=3, mean=3.0, median=2.0, variance=4.66..., deviation=2.16..., ...)
    """
    y = _flat(labels)
    return Statistics(
        count=len(y), mean=float(y.mean()), median=float(np.median(y)), variance=float(y.var()),
        deviation=float(y.std()), smallest=float(y.min()), largest=float(y.max()),
    )  # fmt: skip


def histogram(labels: ArrayLike, *, bins: int = 1000) -> Histogram:
    """Count labels one by one, or in at most `bins` wider bins if their range is larger.

    >>> histogram([3, 5, 5])
    Histogram(start=3, width=1, counts=(1, 0, 2))
    """
    y = np.floor(_flat(labels)).astype(np.int64)
    start = int(y.min())
    width = -(-(int(y.max()) - start + 1) // bins)
    return Histogram(start, width, tuple(np.bincount((y - start) // width).tolist()))


def expected_labels(spec: TaskSpec) -> Distribution:
    """Return the exact distribution of the labels of a task."""
    function = spec.set_function
    if not isinstance(function, ClosedForms):
        raise InputError(f"the label distribution of {function.name} has no closed form")
    return mixture([function.distribution(size) for size in spec.sizes])


def _flat(labels: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    y = np.asarray(labels, dtype=np.float64).reshape(-1)
    if not len(y):
        raise InputError("statistics need at least one label")
    return y
