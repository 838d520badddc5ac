"""Fully connected layers with ReLU between them, some rows at a time.

All layers are done for a few rows, then for the next ones: what a layer computes is still in the
cache when the next one reads it.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from capnets.nn.kernels.loops import inlined, loop, zero
from capnets.nn.kernels.products import at_once

__all__ = ["backward", "forward"]


@inlined
@no_type_check
def _rows_at_once(weights):
    largest = 1
    for layer in range(len(weights)):
        largest = max(largest, weights[layer].size)
    return at_once(largest)


@loop
@no_type_check
def forward(x, weights, biases, outputs):
    """Rows `x` through all layers, the output of each with its own room.

    The last one has room for all rows; those before may have it for few, when nobody needs them.
    """
    rows, last = len(x), len(weights) - 1
    at_once = min(_rows_at_once(weights), len(outputs[0]))
    size = 0
    for layer in range(last + 1):
        size += weights[layer].size
    turned = np.empty(size, np.float32)  # as products read them
    place = 0
    for layer in range(last + 1):
        gives, reads = weights[layer].shape
        turned[place : place + gives * reads].reshape(reads, gives)[:] = weights[layer].T
        place += gives * reads
    for begin in range(0, rows, at_once):
        end = min(begin + at_once, rows)
        before, place = x[begin:end], 0
        for layer in range(last + 1):
            gives, reads = weights[layer].shape
            room, bias = outputs[layer], biases[layer]
            at = begin if len(room) == rows else 0
            after = room[at : at + end - begin]
            np.dot(before, turned[place : place + gives * reads].reshape(reads, gives), after)
            place += gives * reads
            if layer < last:
                for i in range(end - begin):
                    for j in range(gives):
                        value = after[i, j] + bias[j]
                        after[i, j] = zero if value < zero else value  # NaN stays NaN
            else:
                for i in range(end - begin):
                    for j in range(gives):
                        after[i, j] += bias[j]
            before = after


@loop
@no_type_check
def backward(dy, x, weights, outputs, dweights, dbiases, dx):
    """Derivatives of weights, biases and, if `dx` has rows, of `x`, from those of the last rows."""
    rows, last = len(x), len(weights) - 1
    at_once = _rows_at_once(weights)
    widest, largest = 0, 0
    for layer in range(last + 1):
        widest = max(widest, weights[layer].shape[1])
        largest = max(largest, weights[layer].size)
        dweights[layer][:] = zero
        dbiases[layer][:] = zero
    product = np.empty(largest, np.float32)
    ours, others = np.empty(at_once * widest, np.float32), np.empty(at_once * widest, np.float32)
    for begin in range(0, rows, at_once):
        end = min(begin + at_once, rows)
        after = dy[begin:end]
        for layer in range(last, -1, -1):
            weight, dweight, dbias = weights[layer], dweights[layer], dbiases[layer]
            gives, reads = weight.shape
            before = outputs[layer - 1][begin:end] if layer else x[begin:end]
            summand = product[: gives * reads].reshape(gives, reads)
            np.dot(after.T, before, summand)
            for i in range(gives):
                for j in range(reads):
                    dweight[i, j] += summand[i, j]
            for i in range(end - begin):
                for j in range(gives):
                    dbias[j] += after[i, j]
            if layer:
                arriving = ours[: (end - begin) * reads].reshape(end - begin, reads)
                np.dot(after, weight, arriving)
                for i in range(end - begin):
                    for j in range(reads):
                        arriving[i, j] = arriving[i, j] if before[i, j] > zero else zero
                after = arriving
                ours, others = others, ours
            elif len(dx):
                np.dot(after, weight, dx[begin:end])
