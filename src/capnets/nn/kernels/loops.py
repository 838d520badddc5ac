"""How loops are compiled, and arithmetic for them. numba finds types out itself; float32 only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, no_type_check

import numba
import numpy as np

__all__ = [
    "exp",
    "inlined",
    "largest",
    "loop",
    "one",
    "sigmoid",
    "tanh",
    "total",
    "two",
    "zero",
]

one = np.float32(1)
two = np.float32(2)
zero = np.float32(0)

# Sums may use fused multiply-adds, but are reordered by `total` only.
FREE = {"contract", "nsz"}
inlined = numba.njit(inline="always", fastmath=FREE, error_model="numpy")


def loop(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a function of arrays when it is called first, and keep that for other processes."""
    compiled: Any = numba.njit(nogil=True, fastmath=FREE, error_model="numpy")(function)
    with suppress(RuntimeError):  # no folder to keep it in: it is compiled anew next time
        compiled.enable_caching()
    loops: Callable[..., None] = compiled
    return loops


# exp x = 2^n exp r with n whole and |r| <= log(2) / 2. The logarithm is cut in two parts, of which
# the first has few digits, so that n times it is exact.
LOG2_E = np.float32(1 / np.log(2))
LOG_2 = np.float32(0.693359375)
LOG_2_REST = np.float32(np.log(2) - 0.693359375)
FACTORIALS = tuple(np.float32(1 / n) for n in (5040, 720, 120, 24, 6, 2))
LARGEST = np.float32(87)  # beyond, a float32 ends, and a gate has long been open or closed


@inlined
@no_type_check
def exp(x):
    """Nothing but arithmetic, so that eight are computed at once; right to three last digits."""
    x = min(max(x, -LARGEST), LARGEST)
    n = np.floor(x * LOG2_E + np.float32(0.5))
    r = x - n * LOG_2 - n * LOG_2_REST
    a, b, c, d, e, f = FACTORIALS
    series = ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + one) * r + one
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return series * power


@inlined
@no_type_check
def sigmoid(x):
    """As exact as `exp`."""
    return one / (one + exp(-x))


@inlined
@no_type_check
def tanh(x):
    """As exact as `exp`."""
    return two * sigmoid(two * x) - one


@numba.njit(fastmath=FREE | {"reassoc"}, error_model="numpy")
@no_type_check
def total(row):
    """The sum of a row, some of it side by side: how many is up to the processor."""
    found = zero
    for j in range(len(row)):
        found += row[j]
    return found


@inlined
@no_type_check
def largest(row):
    """The largest number of a row."""
    found = row[0]
    for j in range(1, len(row)):
        found = max(found, row[j])
    return found
