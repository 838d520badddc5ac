"""Compute the scan of `ContextCell`: kinds, counts of earlier kinds, gates and products.

Rows are instances: all sets of the first step, all sets of the second, and so on.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from torch import Tensor

from capnets.nn.kernels import kernel
from capnets.nn.kernels.arithmetic import exp, jit, largest, one, total, zero
from capnets.nn.kernels.kernel import BLOCK, Array, CellKernel, to_array

__all__ = ["Context"]


class Context(CellKernel):
    """Concatenate features with gates times the counts of earlier kinds.

    Parameters
    ----------
    parameters
        Weight and bias of the kinds, then of the gates.
    unit
        The count that the next layer sees as 1.
    """

    def __init__(self, *parameters: Tensor, unit: Tensor) -> None:
        super().__init__(*parameters)
        self.unit = unit

    def width(self, features: int) -> int | None:
        weight_kind, bias_kind, weight_gate, bias_gate = (p.shape for p in self.parameters)
        fit = weight_kind == weight_gate == (*bias_kind, features) and bias_kind == bias_gate
        return features + bias_kind[0] if fit else None

    def forward(self, x: Array, *, keep: bool) -> Array:
        steps, sets, features = x.shape
        e, unit = x.reshape(-1, features), to_array(self.unit)
        weight_kind, bias_kind, weight_gate, bias_gate = map(to_array, self.parameters)
        weight_gate, bias_gate = weight_gate / unit, bias_gate / unit
        rows, number = len(e), len(bias_kind)
        counts = kernel.empty(sets + rows, number)
        counts[:sets] = self.before
        kinds, gates = kernel.empty(rows, number), kernel.empty(rows, number)
        z = kernel.empty(rows, features + number)
        _forward(e, weight_kind, bias_kind, weight_gate, bias_gate, counts, kinds, gates, z)
        self.kept = e, weight_kind, weight_gate, counts, kinds, gates
        self.after = counts[rows:].copy()
        return z.reshape(steps, sets, -1)

    def backward(self, dy: Array, *, need_dx: bool) -> tuple[Array, list[Array]]:
        steps, sets, outputs = dy.shape
        e, weight_kind, weight_gate, *_ = self.kept
        de, self.dbefore = kernel.empty(*e.shape), self.dafter.copy()
        dkind, dgate = kernel.empty(*weight_kind.shape), kernel.empty(*weight_gate.shape)
        dbiases = kernel.empty(2, len(weight_kind))
        dz, unit = dy.reshape(-1, outputs), to_array(self.unit)
        _backward(dz, *self.kept, de, self.dbefore, dkind, dgate, dbiases)
        return de.reshape(steps, sets, -1), [dkind, dbiases[0], dgate / unit, dbiases[1] / unit]


@jit
@no_type_check
def _forward(e, weight_kind, bias_kind, weight_gate, bias_gate, counts, kinds, gates, z):
    """Fill counts, which begin with those before the first step, and z = [e, gate * count]."""
    rows, features = e.shape
    number, sets = len(bias_kind), len(counts) - rows
    to_kind, to_gate = weight_kind.T.copy(), weight_gate.T.copy()
    for begin in range(0, rows, BLOCK):
        end = min(begin + BLOCK, rows)
        np.dot(e[begin:end], to_kind, kinds[begin:end])
        np.dot(e[begin:end], to_gate, gates[begin:end])
        for row in range(begin, end):
            kind, gate, out = kinds[row], gates[row], z[row]
            before, after = counts[row], counts[row + sets]
            for j in range(number):
                kind[j] += bias_kind[j]
            highest = largest(kind)
            for j in range(number):
                kind[j] = exp(kind[j] - highest)
            share = one / total(kind)
            for j in range(features):
                out[j] = e[row, j]
            for j in range(number):
                kind[j] *= share
                after[j] = before[j] + kind[j]
                value = gate[j] + bias_gate[j]
                gate[j] = zero if value < zero else value  # NaN stays NaN
                out[features + j] = gate[j] * before[j]


@jit
@no_type_check
def _backward(
    dz, e, weight_kind, weight_gate, counts, kinds, gates, de, dcounts, dkind, dgate, dbiases
):
    """Compute the gradients of features, weights and biases, and of the counts before all steps.

    `dcounts` holds the gradient of the counts after the last step when the loop begins.
    """
    rows, features = e.shape
    number, sets = len(weight_kind), len(dcounts)
    to_kinds, to_gates = (
        np.empty((BLOCK, number), np.float32),
        np.empty((BLOCK, number), np.float32),
    )
    product = np.empty((number, features), np.float32)
    part = np.empty((BLOCK, features), np.float32)
    dkind[:], dgate[:], dbiases[:] = zero, zero, zero
    for end in range(rows, 0, -BLOCK):
        begin = max(end - BLOCK, 0)
        count = end - begin
        for row in range(end - 1, begin - 1, -1):
            kind, gate, before = kinds[row], gates[row], counts[row]
            arriving, later = dz[row], dcounts[row % sets]
            to_kind, to_gate = to_kinds[row - begin], to_gates[row - begin]
            for j in range(number):
                to_kind[j] = later[j] * kind[j]
            shared = total(to_kind)
            for j in range(number):
                d = arriving[features + j]
                to_kind[j] -= shared * kind[j]
                to_gate[j] = d * before[j] if gate[j] > zero else zero
                later[j] += d * gate[j]
                dbiases[0, j] += to_kind[j]
                dbiases[1, j] += to_gate[j]
        into = de[begin:end]
        np.dot(to_kinds[:count], weight_kind, into)
        np.dot(to_gates[:count], weight_gate, part[:count])
        for i in range(count):
            for j in range(features):
                into[i, j] += part[i, j] + dz[begin + i, j]
        np.dot(to_kinds[:count].T, e[begin:end], product)
        for i in range(number):
            for j in range(features):
                dkind[i, j] += product[i, j]
        np.dot(to_gates[:count].T, e[begin:end], product)
        for i in range(number):
            for j in range(features):
                dgate[i, j] += product[i, j]
