"""Matrix products over many rows, some rows at a time, for other kernels.

numba calls the BLAS of scipy. A block of rows is so small that its results are still in the cache
when they are read next.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from capnets.nn.kernels.arithmetic import jit, zero
from capnets.nn.kernels.kernel import BLOCK

__all__ = ["linear", "linear_backward", "multiply", "sum_rows", "transposed"]

#: Products of fewer rows are computed by a loop: calling BLAS would take longer.
FEW = 4
#: Rows and columns that are transposed at a time.
TILE = 16


@jit
@no_type_check
def transposed(matrix):
    """Return the transposed matrix, row-major; in tiles, as columns of large ones lie apart."""
    rows, columns = matrix.shape
    found = np.empty((columns, rows), np.float32)
    for top in range(0, rows, TILE):
        for left in range(0, columns, TILE):
            for j in range(left, min(left + TILE, columns)):
                for i in range(top, min(top + TILE, rows)):
                    found[j, i] = matrix[i, j]
    return found


@jit
@no_type_check
def multiply(rows, matrix, into):
    """Multiply rows by a matrix."""
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


@jit
@no_type_check
def linear(x, weight, bias, y):
    """Apply a linear layer."""
    matrix = transposed(weight)
    for begin in range(0, len(x), BLOCK):
        end = min(begin + BLOCK, len(x))
        multiply(x[begin:end], matrix, y[begin:end])
        for i in range(begin, end):
            for j in range(len(bias)):
                y[i, j] += bias[j]


@jit
@no_type_check
def linear_backward(dy, x, weight, dweight, dx):
    """Compute the gradient of the weight and, if `dx` has rows, of the inputs."""
    product = np.empty_like(weight) if len(x) > BLOCK else dweight
    for begin in range(0, len(x), BLOCK):
        end = min(begin + BLOCK, len(x))
        np.dot(dy[begin:end].T, x[begin:end], product if begin else dweight)
        if begin:
            for i in range(weight.shape[0]):
                for j in range(weight.shape[1]):
                    dweight[i, j] += product[i, j]
        if len(dx):
            multiply(dy[begin:end], weight, dx[begin:end])


@jit
@no_type_check
def sum_rows(rows, total):
    """Sum all rows."""
    total[:] = zero
    for i in range(len(rows)):
        for j in range(len(total)):
            total[j] += rows[i, j]
