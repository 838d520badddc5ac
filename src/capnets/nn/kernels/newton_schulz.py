"""The Newton-Schulz iteration of `capnets.training.muon`, one small matrix after another."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from capnets.nn.kernels.arithmetic import jit

__all__ = ["orthogonalize"]


@jit
@no_type_check
def orthogonalize(stack, factors, iterations):
    """Replace every x of a stack by a x + (b x x' + c (x x')^2) x, `iterations` times."""
    number, height, width = stack.shape
    a, b, c = factors
    square = np.empty((height, height), np.float32)
    fourth = np.empty((height, height), np.float32)
    product = np.empty((height, width), np.float32)
    for k in range(number):
        x = stack[k]
        for _ in range(iterations):
            np.dot(x, x.T, square)
            np.dot(square, square, fourth)
            for i in range(height):
                for j in range(height):
                    fourth[i, j] = b * square[i, j] + c * fourth[i, j]
            np.dot(fourth, x, product)
            for i in range(height):
                for j in range(width):
                    x[i, j] = a * x[i, j] + product[i, j]
