"""What `context` counts, some rows at a time: kinds, counts before, gates, and their products.

Rows are instances: all sets of the first step, all sets of the second, …
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from capnets.nn.kernels.loops import exp, largest, loop, one, total, zero
from capnets.nn.kernels.products import at_once

__all__ = ["backward", "forward"]


@loop
@no_type_check
def forward(e, weight_kind, bias_kind, weight_gate, bias_gate, counts, kinds, gates, z):
    """Counts begin with those before the first step; a row of `z` is [e, gate times count]."""
    rows, features = e.shape
    number, sets = len(bias_kind), len(counts) - rows
    to_kind, to_gate = weight_kind.T.copy(), weight_gate.T.copy()
    some = at_once(weight_kind.size)
    for begin in range(0, rows, some):
        end = min(begin + some, rows)
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


@loop
@no_type_check
def backward(
    dz, e, weight_kind, weight_gate, counts, kinds, gates, de, dcounts, dkind, dgate, dbiases
):
    """Derivatives of features, weights and both biases, and of the counts before the first step.

    `dcounts` begins with the derivatives of the counts after the last step.
    """
    rows, features = e.shape
    number, sets = len(weight_kind), len(dcounts)
    some = at_once(weight_kind.size)
    to_kinds, to_gates = np.empty((some, number), np.float32), np.empty((some, number), np.float32)
    product = np.empty((number, features), np.float32)
    part = np.empty((some, features), np.float32)
    dkind[:], dgate[:], dbiases[:] = zero, zero, zero
    for end in range(rows, 0, -some):
        begin = max(end - some, 0)
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
