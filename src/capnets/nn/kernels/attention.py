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
def _forward(q, k, v, seen, heads, scale, weights, h):
    """Fill weights and states."""
    sets, queries, features = q.shape
    keys, width, lanes = k.shape[1], features // heads, weights.shape[4]
    query = np.zeros((queries, width, lanes), np.float32)
    room = np.zeros((2, keys, width, lanes), np.float32)
    key, value = room[0], room[1]
    hidden = np.zeros((keys, lanes), np.float32)  # added to the scores
    top, part = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    for block in range(len(weights)):
        begin = block * lanes
        if len(seen):
            for b in range(min(lanes, sets - begin)):
                for j in range(keys):
                    hidden[j, b] = zero if seen[begin + b, j] else lowest
        for head in range(heads):
            first = head * width
            _load(q, begin, first, query)
            _load(k, begin, first, key)
            _load(v, begin, first, value)
            for i in range(queries):
                asked = query[i]
                top[:] = lowest
                for j in range(keys):
                    row, read = weights[block, head, i, j], key[j]
                    row[:] = zero
                    for d in range(width):
                        for b in range(lanes):
                            row[b] += asked[d, b] * read[d, b]
                    for b in range(lanes):
                        row[b] = row[b] * scale + hidden[j, b]
                        top[b] = max(top[b], row[b])
                part[:] = zero
                for j in range(keys):
                    row = weights[block, head, i, j]
                    for b in range(lanes):
                        row[b] = exp(row[b] - top[b])
                        part[b] += row[b]
                for b in range(lanes):
                    part[b] = one / part[b]
                for j in range(keys):
                    row, read = weights[block, head, i, j], value[j]
                    for b in range(lanes):
                        row[b] *= part[b]
                    for d in range(width):
                        for b in range(lanes):
                            asked[d, b] += row[b] * read[d, b]
            _store(query, begin, first, h)


@jit
@no_type_check
def _backward(dh, q, k, v, heads, scale, weights, dq, dk, dv):
    """Fill the gradients of queries, keys and values."""
    queries, features = q.shape[1:]
    keys, width, lanes = k.shape[1], features // heads, weights.shape[4]
    room = np.zeros((2, queries, width, lanes), np.float32)
    query, arriving = room[0], room[1]
    space = np.zeros((4, keys, width, lanes), np.float32)
    key, value, dkey, dvalue = space[0], space[1], space[2], space[3]
    slope, mean = np.empty((keys, lanes), np.float32), np.empty(lanes, np.float32)
    for block in range(len(weights)):
        begin = block * lanes
        for head in range(heads):
            first = head * width
            _load(q, begin, first, query)
            _load(dh, begin, first, arriving)
            _load(k, begin, first, key)
            _load(v, begin, first, value)
            dkey[:], dvalue[:] = zero, zero
            for i in range(queries):
                asked, d_asked = query[i], arriving[i]
                mean[:] = zero
                for j in range(keys):
                    row, weight = slope[j], weights[block, head, i, j]
                    read, d_read = value[j], dvalue[j]
                    row[:] = zero
                    for d in range(width):
                        for b in range(lanes):
                            row[b] += d_asked[d, b] * read[d, b]
                            d_read[d, b] += weight[b] * d_asked[d, b]
                    for b in range(lanes):
                        mean[b] += row[b] * weight[b]
                for j in range(keys):
                    row, weight, d_read = slope[j], weights[block, head, i, j], dkey[j]
                    for b in range(lanes):
                        row[b] = weight[b] * (row[b] - mean[b]) * scale
                    for d in range(width):
                        for b in range(lanes):
                            d_read[d, b] += row[b] * asked[d, b]
                for j in range(keys):
                    row, read = slope[j], key[j]
                    for d in range(width):
                        for b in range(lanes):
                            d_asked[d, b] += row[b] * read[d, b]
            _store(arriving, begin, first, dq)
            _store(dkey, begin, first, dk)
            _store(dvalue, begin, first, dv)
