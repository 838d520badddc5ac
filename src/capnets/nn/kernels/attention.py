"""Attention inside small sets, by all sets of a block at once.

Each head of each small set is a few tiny matrix products, which take torch longer to call than to
compute. Here, the innermost index is the set, so that every operation is one of long vectors.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numpy.typing import NDArray

from capnets.nn.kernels import kernel
from capnets.nn.kernels.arithmetic import exp, jit, one, zero
from capnets.nn.kernels.kernel import Array

__all__ = ["Attention"]

#: Sets that are computed together.
LANES = 32
lowest = np.float32(-np.inf)


class Attention:
    """Queries plus what their heads attend to; stores its weights for one backward pass.

    Parameters
    ----------
    q, k, v
        Queries, keys and values: sets x size x features.
    seen
        Sets x keys, False where no query attends; no rows if all are seen.
    heads
        The number of heads that share the features.
    """

    def __init__(self, q: Array, k: Array, v: Array, seen: NDArray[np.bool_], heads: int) -> None:
        self.inputs, self.seen, self.heads = (q, k, v), seen, heads
        self.scale = np.float32(q.shape[2] ** -0.5)
        blocks, sizes = -(-len(q) // LANES), (q.shape[1], k.shape[1])
        self.weights = kernel.empty(blocks, heads, *sizes, LANES)

    def forward(self) -> Array:
        """Return the states of all queries."""
        h = kernel.empty(*self.inputs[0].shape)
        _forward(*self.inputs, self.seen, self.heads, self.scale, self.weights, h)
        return h

    def backward(self, dh: Array) -> list[Array]:
        """Return the gradients of queries, keys and values."""
        gradients = [kernel.empty(*x.shape) for x in self.inputs]
        _backward(dh, *self.inputs, self.heads, self.scale, self.weights, *gradients)
        return gradients


@jit
@no_type_check
def _load(rows, begin, first, block):
    """Copy the features of a head, from `first` on, of the sets from `begin` on."""
    size, width, lanes = block.shape
    for b in range(min(lanes, len(rows) - begin)):
        for i in range(size):
            for d in range(width):
                block[i, d, b] = rows[begin + b, i, first + d]


@jit
@no_type_check
def _store(block, begin, first, rows):
    """Copy them back."""
    size, width, lanes = block.shape
    for b in range(min(lanes, len(rows) - begin)):
        for i in range(size):
            for d in range(width):
                rows[begin + b, i, first + d] = block[i, d, b]


@jit
@no_type_check
def _dot(rows, one_row, products):
    """Multiply every row by one row: keys x lanes."""
    products[:] = zero
    for j in range(len(rows)):
        for d in range(len(one_row)):
            for b in range(products.shape[1]):
                products[j, b] += one_row[d, b] * rows[j, d, b]


@jit
@no_type_check
def _add_sum(weights, rows, total):
    """Add the weighted sum of rows to a row."""
    for j in range(len(rows)):
        for d in range(len(total)):
            for b in range(weights.shape[1]):
                total[d, b] += weights[j, b] * rows[j, d, b]


@jit
@no_type_check
def _add_each(weights, one_row, rows):
    """Add a row to every row, weighted."""
    for j in range(len(rows)):
        for d in range(len(one_row)):
            for b in range(weights.shape[1]):
                rows[j, d, b] += weights[j, b] * one_row[d, b]


@jit
@no_type_check
def _softmax(scores, hidden, scale):
    """Turn the scores of one query into weights, in place; `hidden` is added to scaled scores."""
    keys, lanes = scores.shape
    top, total = np.full(lanes, lowest), np.zeros(lanes, np.float32)
    for j in range(keys):
        for b in range(lanes):
            scores[j, b] = scores[j, b] * scale + hidden[j, b]
            top[b] = max(top[b], scores[j, b])
    for j in range(keys):
        for b in range(lanes):
            scores[j, b] = exp(scores[j, b] - top[b])
            total[b] += scores[j, b]
    for b in range(lanes):
        total[b] = one / total[b]
    for j in range(keys):
        for b in range(lanes):
            scores[j, b] *= total[b]


@jit
@no_type_check
def _through_softmax(slopes, weights, scale):
    """Turn gradients of the weights of one query into gradients of its scores, in place."""
    keys, lanes = slopes.shape
    mean = np.zeros(lanes, np.float32)
    for j in range(keys):
        for b in range(lanes):
            mean[b] += slopes[j, b] * weights[j, b]
    for j in range(keys):
        for b in range(lanes):
            slopes[j, b] = weights[j, b] * (slopes[j, b] - mean[b]) * scale


@jit
@no_type_check
def _hide(seen, begin, hidden):
    """Set what is added to the scores of a block: 0, or -inf where no query attends."""
    for b in range(min(hidden.shape[1], len(seen) - begin)):
        for j in range(len(hidden)):
            hidden[j, b] = zero if seen[begin + b, j] else lowest


@jit
@no_type_check
def _forward(q, k, v, seen, heads, scale, weights, h):
    """Fill weights and states."""
    queries, keys, width, lanes = q.shape[1], k.shape[1], q.shape[2] // heads, weights.shape[4]
    query = np.zeros((queries, width, lanes), np.float32)
    room = np.zeros((2, keys, width, lanes), np.float32)
    key, value = room[0], room[1]
    hidden = np.zeros((keys, lanes), np.float32)
    for block in range(len(weights)):
        begin = block * lanes
        _hide(seen, begin, hidden)
        for head in range(heads):
            first = head * width
            _load(q, begin, first, query)
            _load(k, begin, first, key)
            _load(v, begin, first, value)
            for i in range(queries):
                own = weights[block, head, i]
                _dot(key, query[i], own)
                _softmax(own, hidden, scale)
                _add_sum(own, value, query[i])
            _store(query, begin, first, h)


@jit
@no_type_check
def _backward(dh, q, k, v, heads, scale, weights, dq, dk, dv):
    """Fill the gradients of queries, keys and values."""
    queries, keys, width, lanes = q.shape[1], k.shape[1], q.shape[2] // heads, weights.shape[4]
    room = np.zeros((2, queries, width, lanes), np.float32)
    query, d_query = room[0], room[1]
    space = np.zeros((4, keys, width, lanes), np.float32)
    key, value, d_key, d_value = space[0], space[1], space[2], space[3]
    slopes = np.empty((keys, lanes), np.float32)
    for block in range(len(weights)):
        begin = block * lanes
        for head in range(heads):
            first = head * width
            _load(q, begin, first, query)
            _load(dh, begin, first, d_query)
            _load(k, begin, first, key)
            _load(v, begin, first, value)
            d_key[:], d_value[:] = zero, zero
            for i in range(queries):
                own = weights[block, head, i]
                _dot(value, d_query[i], slopes)
                _add_each(own, d_query[i], d_value)
                _through_softmax(slopes, own, scale)
                _add_each(slopes, query[i], d_key)
                _add_sum(slopes, key, d_query[i])
            _store(d_query, begin, first, dq)
            _store(d_key, begin, first, dk)
            _store(d_value, begin, first, dv)
