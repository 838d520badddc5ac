"""Products of many rows and one matrix, some rows at a time, for other compiled loops.

numba hands them to the BLAS of scipy. Rows at a time are so few that what was computed of them is
in the cache when it is read next, and that BLAS does not think of several threads.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from capnets.nn.kernels.loops import inlined, loop, zero

__all__ = ["at_once", "back", "project", "times", "total_of_rows"]

#: From so many multiplications on, BLAS (OpenBLAS) may think of several threads.
ALONE = 2**18

#: Fewer rows than these are multiplied here: what BLAS does before it begins would take longer.
FEW = 4


@inlined
@no_type_check
def at_once(weights):
    """How many rows a matrix with so many weights takes at a time."""
    return max(8, min(128, ALONE // max(weights, 1) // 8 * 8))


@loop
@no_type_check
def times(rows, matrix, into):
    """Rows times a matrix."""
    if len(rows) >= FEW:
        np.dot(rows, matrix, into)
        return
    reads, gives = matrix.shape
    whole = reads - reads % 4
    for i in range(len(rows)):
        row, out = rows[i], into[i]
        out[:] = zero
        for k in range(0, whole, 4):
            a, b, c, d = row[k], row[k + 1], row[k + 2], row[k + 3]
            for j in range(gives):
                out[j] += (
                    a * matrix[k, j]
                    + b * matrix[k + 1, j]
                    + c * matrix[k + 2, j]
                    + d * matrix[k + 3, j]
                )
        for k in range(whole, reads):
            a = row[k]
            for j in range(gives):
                out[j] += a * matrix[k, j]


@loop
@no_type_check
def project(x, weight, bias, y):
    """What a linear layer makes of rows."""
    turned = weight.T.copy()
    some = at_once(weight.size)
    for begin in range(0, len(x), some):
        end = min(begin + some, len(x))
        times(x[begin:end], turned, y[begin:end])
        for i in range(begin, end):
            for j in range(len(bias)):
                y[i, j] += bias[j]


@loop
@no_type_check
def back(dy, x, weight, dweight, dx):
    """Derivatives of the weight and, if `dx` has rows, of what it was multiplied by."""
    dweight[:] = zero
    product = np.empty_like(weight)
    some = at_once(weight.size)
    for begin in range(0, len(x), some):
        end = min(begin + some, len(x))
        np.dot(dy[begin:end].T, x[begin:end], product)
        for i in range(weight.shape[0]):
            for j in range(weight.shape[1]):
                dweight[i, j] += product[i, j]
        if len(dx):
            times(dy[begin:end], weight, dx[begin:end])


@loop
@no_type_check
def total_of_rows(rows, total):
    """The sum of all rows."""
    total[:] = zero
    for i in range(len(rows)):
        for j in range(len(total)):
            total[j] += rows[i, j]
