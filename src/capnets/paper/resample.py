"""Uncertainty of numbers: resample test sets and seeds.

A number comes with replicates, the values that it might have had with other test sets and other
seeds. Test sets are resampled in blocks (see `execute.BLOCKS`). All networks see the same test
sets, so replicate k takes the same blocks for every network: differences are paired. Seeds are few;
their mean varies by a t distribution with the standard error that they show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["REPLICATES", "interval", "replicates"]

Array = NDArray[Any]

REPLICATES = 2000
# Share of replicates beyond each end of a 95 % interval.
TAIL = 0.025


def replicates(
    value: float, seeds: Sequence[float], blocks: Sequence[Sequence[float]], *, name: str
) -> Array | None:
    """Return `REPLICATES` values that a number might have had; None without seeds and blocks.

    Parameters
    ----------
    value
        The number, a statistic over seeds.
    seeds
        The number of each seed. A single one says nothing about others.
    blocks
        The errors of each seed on the same blocks of test sets; empty if they were not recorded.
    name
        Identifies the number: different numbers vary independently over seeds.
    """
    result = np.full(REPLICATES, value)
    if blocks:
        errors = np.mean(blocks, axis=0)
        result += _weights(len(errors)) @ errors - errors.mean()
    if len(seeds) > 1:
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        noise = np.random.default_rng(key).standard_t(len(seeds) - 1, size=REPLICATES)
        result += noise * np.std(seeds, ddof=1) / np.sqrt(len(seeds))
    return result if blocks or len(seeds) > 1 else None


def interval(counts: Array) -> tuple[int, int]:
    """Return the range that holds the middle 95 % of replicated counts.

    >>> interval(np.arange(1000))
    (24, 974)
    """
    low, high = np.quantile(counts, [TAIL, 1 - TAIL], method="inverted_cdf")
    return int(low), int(high)


@cache
def _weights(blocks: int) -> Array:
    """Return how often each replicate draws each block, divided by the number of blocks."""
    drawn = np.random.default_rng(0).multinomial(blocks, [1 / blocks] * blocks, size=REPLICATES)
    return drawn / blocks
