"""The compiler decorators of kernels, and float32 arithmetic that vectorises."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, no_type_check

import numba
import numpy as np

__all__ = [
    "exp",
    "inlined",
    "jit",
    "largest",
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

# Fused multiply-adds are allowed; only `total` may reorder a sum.
FREE = {"contract", "nsz"}
inlined = numba.njit(inline="always", fastmath=FREE, error_model="numpy")


def jit(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a function of arrays on its first call; cache the code for other processes."""
    compiled: Any = numba.njit(nogil=True, fastmath=FREE, error_model="numpy")(function)
    with suppress(RuntimeError):  # no writable folder: every process compiles it again
        compiled.enable_caching()
    kernel: Callable[..., None] = compiled
    return kernel


# exp x = 2^n exp r with integer n and |r| <= log(2) / 2. The logarithm is split into two parts; the
# first has few digits, so that its product with n is exact.
LOG2_E = np.float32(1 / np.log(2))
LOG_2 = np.float32(0.693359375)
LOG_2_REST = np.float32(np.log(2) - 0.693359375)
FACTORIALS = tuple(np.float32(1 / n) for n in (5040, 720, 120, 24, 6, 2))
LARGEST = np.float32(87)  # float32 overflows soon after; gates are saturated long before


@inlined
@no_type_check
def exp(x):
    """Compute exp by arithmetic only, so that it vectorises; accurate to three ulp."""
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
    """Compute the logistic function, as accurate as `exp`."""
    return one / (one + exp(-x))


@inlined
@no_type_check
def tanh(x):
    """Compute tanh, as accurate as `exp`."""
    return two * sigmoid(two * x) - one


@numba.njit(fastmath=FREE | {"reassoc"}, error_model="numpy")
@no_type_check
def total(row):
    """Sum a row; the order of the summands is up to the compiler."""
    found = zero
    for j in range(len(row)):
        found += row[j]
    return found


@inlined
@no_type_check
def largest(row):
    """Return the largest entry of a row."""
    found = row[0]
    for j in range(1, len(row)):
        found = max(found, row[j])
    return found
