r"""Labels of sets whose classes are known only with probabilities.

A classifier of images returns probabilities. Given the probability $p_{ic}$ that instance i is of
class c, independently of the other instances, the prediction with the lowest expected squared error
is the mean label. All six set functions have it in closed form, from

- a class is present with $1 - \prod_i (1 - p_{ic})$,
- two classes are both present with
  $1 - \prod_i (1 - p_{ia}) - \prod_i (1 - p_{ib}) + \prod_i (1 - p_{ia} - p_{ib})$,
- the triangular number of a count has the mean
  $\tfrac12 \bigl(s^2 + s + \sum_i p_{ic} (1 - p_{ic})\bigr)$ with $s = \sum_i p_{ic}$.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from capnets.errors import InputError, unknown
from capnets.tasks.counting import CLASSES, Floats
from capnets.tasks.functions import PAIRS

__all__ = ["mean_labels"]

_NUMBERS = np.arange(CLASSES)


def mean_labels(function: str, probabilities: NDArray[np.floating]) -> Floats:
    """Return the mean label of every set, given class probabilities of its instances.

    Parameters
    ----------
    function
        The name of a set function.
    probabilities
        Sets x instances x classes; the probabilities of an instance sum to 1.

    Examples
    --------
    A 7 and what is as likely a 1 as a 7: their unique sum is 8 or 7.

    >>> p = np.zeros((1, 2, 10))
    >>> p[0, 0, 7] = 1
    >>> p[0, 1, [1, 7]] = 0.5
    >>> mean_labels("unique-sum", p)
    array([7.5])
    """
    if function not in MEANS:
        raise unknown("set function", function, MEANS)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 3 or p.shape[2] != CLASSES:
        raise InputError(
            f"probabilities have shape {p.shape}; expected sets x instances x {CLASSES} classes"
        )
    if p.size and (p.min() < 0 or np.abs(p.sum(2) - 1).max() > 1e-4):
        raise InputError("the probabilities of an instance must not be negative and must sum to 1")
    return MEANS[function](p)


def _present(p: Floats) -> Floats:
    present: Floats = 1 - (1 - p).prod(1)
    return present


def _triangular(p: Floats) -> Floats:
    total = p.sum(1)
    triangular: Floats = 0.5 * (total**2 + total + (p * (1 - p)).sum(1))
    return triangular


def _pairs(p: Floats) -> Floats:
    """Return the expected number of pairs with a bonus."""
    a, b = np.array(PAIRS).T
    neither = (1 - p[:, :, a] - p[:, :, b]).prod(1)
    present = _present(p)
    pairs: Floats = (present[:, a] + present[:, b] - 1 + neither).sum(1)
    return pairs


MEANS: dict[str, Callable[[Floats], Floats]] = {
    "unique-sum": lambda p: _present(p) @ _NUMBERS,
    "weighted-triangular": lambda p: _triangular(p) @ _NUMBERS,
    "unique-sum-synergy": lambda p: _present(p) @ _NUMBERS + 10 * _pairs(p),
    "unique-count": lambda p: _present(p).sum(1),
    "triangular-count": lambda p: _triangular(p).sum(1),
    "product": lambda p: (p @ _NUMBERS).prod(1),
}
