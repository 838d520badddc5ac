"""Types of instances, and columns that lose precision in float32."""

from __future__ import annotations

from math import floor, log10
from typing import Any

import ml_dtypes
import numpy as np

from capnets.sets.ragged import Array

__all__ = ["BFLOAT16", "HALF", "TOO_FAR", "Range", "is_far", "is_number", "is_wide"]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
#: Types of instances that are kept as they are, and converted batch by batch.
HALF = (np.dtype(np.float16), BFLOAT16)

#: Factor by which values must exceed their range to get an offset (14 of 24 bits would remain).
FAR = 2**10
#: Factor above which columns without an offset raise an error (8 of 24 bits would remain).
TOO_FAR = 2**16
#: Values that differ by less than this share of their size differ by float64 rounding only.
ROUNDING = 2.0**-44


def is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is one of real numbers or Booleans."""
    return dtype.kind in "fiub" or dtype == BFLOAT16


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of this type may lose digits in float32."""
    return not np.can_cast(dtype, np.float32)


def is_far(low: Any, high: Any, *, times: int = FAR) -> Any:
    """Return whether numbers from low to high exceed their range by the given factor."""
    return np.maximum(np.abs(low), np.abs(high)) > times * (high - low)


class Range:
    """Track the range of a column, and whether float32 holds its values exactly."""

    def __init__(self) -> None:
        self.low, self.high, self.exact = np.inf, -np.inf, True

    def add(self, numbers: Array) -> None:
        """Add float64 numbers of the column."""
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
            with np.errstate(over="ignore"):
                self.exact = self.exact and bool((numbers.astype(np.float32) == numbers).all())

    def loses(self, *, times: int = FAR) -> bool:
        """Return whether float32 blurs values that exceed their range by the given factor."""
        far = bool(is_far(self.low, self.high, times=times))
        return not self.exact and self.high > self.low and far

    @property
    def rounding(self) -> bool:
        """Return whether the values are equal up to rounding."""
        return self.high - self.low <= ROUNDING * max(abs(self.low), abs(self.high))

    def middle(self) -> float:
        """Return a round number in or near the range."""
        width = self.high - self.low
        return round(self.low + width / 2, -floor(log10(width)))
