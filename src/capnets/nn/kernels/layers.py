"""Fully connected layers with ReLU between them, a block of rows at a time.

All layers are applied to one block before the next: the output of a layer is still in the cache
when the next layer reads it.
"""

from __future__ import annotations

from itertools import chain
from typing import no_type_check

import numpy as np

from capnets.nn.kernels import kernel
from capnets.nn.kernels.arithmetic import jit, zero
from capnets.nn.kernels.kernel import BLOCK, Array, Kernel, to_array

__all__ = ["Layers"]


class Layers(Kernel):
    """Linear layers with ReLU between them; parameters alternate between weights and biases."""

    def width(self, features: int) -> int | None:
        for weight, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            if weight.shape != (*bias.shape, features):
                return None
            features = bias.shape[0]
        return features

    def forward(self, x: Array, *, keep: bool) -> Array:
        steps, sets, features = x.shape
        rows = x.reshape(-1, features)
        arrays = [to_array(p) for p in self.parameters]
        weights, biases = (*arrays[::2],), (*arrays[1::2],)
        room = len(rows) if keep else min(len(rows), BLOCK)
        hidden = [kernel.empty(room, len(b)) for b in biases[:-1]]
        y = kernel.empty(len(rows), len(biases[-1]))
        _forward(rows, weights, biases, (*hidden, y))
        self.kept = rows, weights, (*hidden, rows)  # the last one is a placeholder
        return y.reshape(steps, sets, -1)

    def backward(self, dy: Array, *, need_dx: bool) -> tuple[Array | None, list[Array]]:
        steps, sets, outputs = dy.shape
        rows, weights, hidden = self.kept
        dweights = (*(kernel.empty(*w.shape) for w in weights),)
        dbiases = (*(kernel.empty(len(w)) for w in weights),)
        dx = kernel.empty(len(rows) if need_dx else 0, rows.shape[1])
        _backward(dy.reshape(-1, outputs), rows, weights, hidden, dweights, dbiases, dx)
        gradients = [*chain(*zip(dweights, dbiases, strict=True))]
        return dx.reshape(steps, sets, -1) if need_dx else None, gradients


@jit
@no_type_check
def _forward(x, weights, biases, outputs):
    """Fill the outputs of all layers.

    The last output has all rows; hidden ones may have one block only, if nothing is differentiated.
    """
    rows, last = len(x), len(weights) - 1
    size = 0
    for layer in range(last + 1):
        size += weights[layer].size
    transposed = np.empty(size, np.float32)
    place = 0
    for layer in range(last + 1):
        outs, ins = weights[layer].shape
        transposed[place : place + outs * ins].reshape(ins, outs)[:] = weights[layer].T
        place += outs * ins
    for begin in range(0, rows, BLOCK):
        end = min(begin + BLOCK, rows)
        before, place = x[begin:end], 0
        for layer in range(last + 1):
            outs, ins = weights[layer].shape
            room, bias = outputs[layer], biases[layer]
            at = begin if len(room) == rows else 0
            after = room[at : at + end - begin]
            np.dot(before, transposed[place : place + outs * ins].reshape(ins, outs), after)
            place += outs * ins
            if layer < last:
                for i in range(end - begin):
                    for j in range(outs):
                        value = after[i, j] + bias[j]
                        after[i, j] = zero if value < zero else value  # NaN stays NaN
            else:
                for i in range(end - begin):
                    for j in range(outs):
                        after[i, j] += bias[j]
            before = after


@jit
@no_type_check
def _backward(dy, x, weights, outputs, dweights, dbiases, dx):
    """Compute the gradients of weights, biases and, if `dx` has rows, of `x`."""
    rows, last = len(x), len(weights) - 1
    widest, largest = 0, 0
    for layer in range(last + 1):
        widest = max(widest, weights[layer].shape[1])
        largest = max(largest, weights[layer].size)
        dweights[layer][:] = zero
        dbiases[layer][:] = zero
    product = np.empty(largest, np.float32)
    ours, others = np.empty(BLOCK * widest, np.float32), np.empty(BLOCK * widest, np.float32)
    for begin in range(0, rows, BLOCK):
        end = min(begin + BLOCK, rows)
        after = dy[begin:end]
        for layer in range(last, -1, -1):
            weight, dweight, dbias = weights[layer], dweights[layer], dbiases[layer]
            outs, ins = weight.shape
            before = outputs[layer - 1][begin:end] if layer else x[begin:end]
            summand = product[: outs * ins].reshape(outs, ins)
            np.dot(after.T, before, summand)
            for i in range(outs):
                for j in range(ins):
                    dweight[i, j] += summand[i, j]
            for i in range(end - begin):
                for j in range(outs):
                    dbias[j] += after[i, j]
            if layer:
                arriving = ours[: (end - begin) * ins].reshape(end - begin, ins)
                np.dot(after, weight, arriving)
                for i in range(end - begin):
                    for j in range(ins):
                        arriving[i, j] = arriving[i, j] if before[i, j] > zero else zero
                after = arriving
                ours, others = others, ours
            elif len(dx):
                np.dot(after, weight, dx[begin:end])
