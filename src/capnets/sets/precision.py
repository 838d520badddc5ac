"""Which numbers lose what tells them apart when they are cut to 32 bits."""

from __future__ import annotations

from math import floor, log10
from typing import Any

import numpy as np

from capnets.sets.ragged import Array

__all__ = ["TOO_FAR", "Range", "is_far", "is_wide"]

#: A column this many times larger than its range is far from 0: of 24 bits 14 are left otherwise.
FAR = 2**10
#: Beyond this even sets that cannot be given an offset are not read: of 24 bits 8 are left.
TOO_FAR = 2**16
#: Values that differ by less than this share of their size differ by the rounding of 64 bits.
ROUNDING = 2.0**-44


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of this type may lose digits in 32 bits."""
    return not np.can_cast(dtype, np.float32)


def is_far(low: Any, high: Any, *, times: int = FAR) -> Any:
    """Whether numbers from low to high are so many times larger than they differ."""
    return np.maximum(np.abs(low), np.abs(high)) > times * (high - low)


class Range:
    """What is to be known about a column of numbers before they are cut to 32 bits."""

    def __init__(self) -> None:
        self.low, self.high, self.exact = np.inf, -np.inf, True

    def add(self, numbers: Array) -> None:
        """Take some of the column's 64-bit numbers."""
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
            with np.errstate(over="ignore"):
                self.exact = self.exact and bool((numbers.astype(np.float32) == numbers).all())

    def loses(self, *, times: int = FAR) -> bool:
        """Whether 32 bits blur the values, so many times larger than they differ."""
        far = bool(is_far(self.low, self.high, times=times))
        return not self.exact and self.high > self.low and far

    @property
    def rounding(self) -> bool:
        """Whether the values are one number, but for how it was rounded."""
        return self.high - self.low <= ROUNDING * max(abs(self.low), abs(self.high))

    def middle(self) -> float:
        """A round number in or near the range."""
        width = self.high - self.low
        return round(self.low + width / 2, -floor(log10(width)))
