"""Compute exact distributions of set labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from capnets.tasks.counting import CLASSES, Floats

__all__ = ["Distribution", "Ways", "mixture", "of_blocks", "of_products"]

Ways = Mapping[int, int]
"""Number of sequences that lead to each value."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Labels (ascending) and their probabilities.

    >>> coin = Distribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> coin.mean, coin.variance, coin.median
    (0.5, 0.25, 0.0)
    """

    values: Floats
    probabilities: Floats

    @property
    def mean(self) -> float:
        """The expected label."""
        return float(self.values @ self.probabilities)

    @property
    def variance(self) -> float:
        """The expected squared distance from the mean."""
        return float((self.values - self.mean) ** 2 @ self.probabilities)

    @property
    def median(self) -> float:
        """The smallest label whose cumulative probability reaches one half."""
        # Rounding must not push an exact half below a half.
        place = np.searchsorted(np.cumsum(self.probabilities), 0.5 - 1e-12)
        return float(self.values[place])


def of_blocks(
    ways: Callable[[tuple[int, ...], int], Ways], *, blocks: Iterable[tuple[int, ...]], size: int
) -> Distribution:
    """Return the distribution of a sum over blocks of classes, for `size` uniform instances.

    After each block, `table[m, v]` is the probability that m given instances all belong to the
    blocks processed so far and that their values sum to v. Adding a block is a convolution over v
    and, weighted by binomial coefficients, over m.
    """
    table = np.zeros((size + 1, 1))
    table[0, 0] = 1
    for block in blocks:
        options = [(m, v, w) for m in range(size + 1) for v, w in ways(block, m).items() if w]
        longest = max(v for _, v, _ in options)
        grown = np.zeros((size + 1, table.shape[1] + longest))
        for m, v, w in options:
            places = np.array([[float(comb(n, m))] for n in range(m, size + 1)])
            chance = w / CLASSES**m
            grown[m:, v : v + table.shape[1]] += chance * places * table[: size + 1 - m]
        table = grown
    return _trimmed(np.arange(float(table.shape[1])), table[size])


def of_products(size: int) -> Distribution:
    """Return the distribution of the product of `size` uniform classes."""
    chances = {1: 1.0}
    for _ in range(size):
        longer: dict[int, float] = {}
        for value, chance in chances.items():
            for c in range(CLASSES):
                longer[value * c] = longer.get(value * c, 0.0) + chance / CLASSES
        chances = longer
    values = sorted(chances)
    return Distribution(np.array(values, dtype=float), np.array([chances[v] for v in values]))


def mixture(parts: Sequence[Distribution]) -> Distribution:
    """Return the equal mixture of several distributions, for sets of varying size."""
    values = np.unique(np.concatenate([p.values for p in parts]))
    probabilities = np.zeros(len(values))
    for part in parts:
        probabilities[np.searchsorted(values, part.values)] += part.probabilities / len(parts)
    return Distribution(values, probabilities)


def _trimmed(values: Floats, probabilities: Floats) -> Distribution:
    possible = probabilities > 0
    return Distribution(values[possible], probabilities[possible])
