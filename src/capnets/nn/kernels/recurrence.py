"""Recurrent cells, one class per cell of `capnets.nn.cells`.

All features are multiplied by the gates' matrices beforehand, and the gradients of the matrices are
products over all instances afterwards. In between, a block of sets goes through all steps before
the next block, so that its states stay in the cache. The gates of an instance are adjacent.

The backward passes have two loops over the gates, because LLVM does not vectorise one loop over as
many arrays: it would have to check that none of them overlap.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import no_type_check

import numpy as np
from torch import backends

from capnets.nn.kernels import kernel
from capnets.nn.kernels.arithmetic import jit, one, sigmoid, tanh
from capnets.nn.kernels.kernel import BLOCK, Array, CellKernel, to_array
from capnets.nn.kernels.products import linear, linear_backward, multiply, sum_rows, transposed

__all__ = ["GRU", "LSTM", "RNN"]

#: Hidden dimensions from which torch computes an LSTM faster, except for a single set.
WIDE = 64


class _Recurrence(CellKernel):
    """A recurrence with parameters (weight_ih, weight_hh, *biases)."""

    gates: int
    biases: int

    def width(self, features: int) -> int | None:
        if self.parameters[1].ndim != 2:
            return None
        hidden = self.parameters[1].shape[1]
        rows = self.gates * hidden
        expected = [(rows, features), (rows, hidden), *[(rows,)] * self.biases]
        return hidden if [tuple(p.shape) for p in self.parameters] == expected else None

    def forward(self, x: Array, *, keep: bool) -> Array:
        weights = [to_array(p) for p in self.parameters]
        steps, (sets, width), hidden = len(x), self.before.shape, weights[1].shape[1]
        states = []  # of all steps, with the state before the first in front
        for begin in range(0, width, hidden):
            state = kernel.empty(steps + 1, sets, hidden)
            state[0] = self.before[:, begin : begin + hidden]
            states.append(state)
        self.kept = x, *weights[:2], *self.run(x, weights, *states), *states
        self.after = np.concatenate([state[-1] for state in states], axis=1)
        return states[0][1:]

    def backward(self, dy: Array, *, need_dx: bool) -> tuple[Array | None, list[Array]]:
        x, weight_ih, weight_hh = self.kept[:3]
        rows, hidden = weight_hh.shape
        width = self.dafter.shape[1]
        dstates = [self.dafter[:, b : b + hidden].copy() for b in range(0, width, hidden)]
        dx = kernel.empty(len(x) if need_dx else 0, *x.shape[1:])
        gradients = [kernel.empty(*weight_ih.shape), kernel.empty(rows, hidden)]
        gradients += [kernel.empty(rows) for _ in range(self.biases)]
        self.run_back(dy, *self.kept, dx, *dstates, *gradients)
        self.dbefore = np.concatenate(dstates, axis=1)
        return dx if need_dx else None, gradients

    @abstractmethod
    def run(self, x: Array, weights: list[Array], *states: Array) -> tuple[Array, ...]:
        """Fill the states and return the activations that `run_back` needs."""

    @abstractmethod
    def run_back(self, dy: Array, *arrays: Array) -> None:
        """Fill the gradients, which follow the activations stored by `forward`."""


class RNN(_Recurrence):
    """The tanh cell with one bias vector."""

    gates, biases = 1, 1

    def run(self, x: Array, weights: list[Array], *states: Array) -> tuple[Array, ...]:
        _rnn(x, *weights, *states)
        return ()

    def run_back(self, dy: Array, *arrays: Array) -> None:
        _rnn_backward(dy, *arrays)


class GRU(_Recurrence):
    """Gates r and u; q = U z + c; n = tanh(W e + b + r q)."""

    gates, biases = 3, 2

    def run(self, x: Array, weights: list[Array], *states: Array) -> tuple[Array, ...]:
        activations = kernel.empty(*x.shape[:2], 4 * states[0].shape[2])
        _gru(x, *weights, activations, *states)
        return (activations,)

    def run_back(self, dy: Array, *arrays: Array) -> None:
        _gru_backward(dy, *arrays)


class LSTM(_Recurrence):
    """Gates k, f and o; memory c = f c + k g; state o tanh(c)."""

    gates, biases = 4, 2

    def prefers_torch(self, sets: int, *, alone: bool) -> bool:
        # oneDNN computes the steps of an LSTM in one call, and has no such call for a GRU.
        hidden, wide = self.parameters[1].shape[1], WIDE // 2 if alone else WIDE
        fused = backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        return fused and hidden >= wide and sets * hidden >= 2 * WIDE

    def run(self, x: Array, weights: list[Array], *states: Array) -> tuple[Array, ...]:
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        activations = kernel.empty(*x.shape[:2], 4 * states[0].shape[2])
        _lstm(x, weight_ih, weight_hh, bias_ih + bias_hh, activations, *states)
        return (activations,)

    def run_back(self, dy: Array, *arrays: Array) -> None:
        *arrays_, dbias_ih, dbias_hh = arrays
        _lstm_backward(dy, *arrays_, dbias_ih)
        dbias_hh[:] = dbias_ih


@jit
@no_type_check
def _rnn(e, weight_ih, weight_hh, bias, z):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, len(weight_hh)
    after = z[1:].reshape(rows, hidden)
    linear(e.reshape(rows, features), weight_ih, bias, after)
    transition = transposed(weight_hh)
    room = np.empty((BLOCK, hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps):
            multiply(z[t][begin:end], transition, room[: end - begin])
            for i in range(begin, end):
                s, state = room[i - begin], z[t + 1, i]
                for j in range(hidden):
                    state[j] = tanh(state[j] + s[j])


@jit
@no_type_check
def _rnn_backward(dz, e, weight_ih, weight_hh, z, de, dh, dweight_ih, dweight_hh, dbias):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, len(weight_hh)
    d = np.empty((steps, sets, hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                step, state, arriving, later = d[t, i], z[t + 1, i], dz[t, i], dh[i]
                for j in range(hidden):
                    step[j] = (later[j] + arriving[j]) * (one - state[j] * state[j])
            multiply(d[t][begin:end], weight_hh, dh[begin:end])
    flat = d.reshape(rows, hidden)
    sum_rows(flat, dbias)
    inputs, dinputs = e.reshape(rows, features), de.reshape(-1, features)
    linear_backward(flat, inputs, weight_ih, dweight_ih, dinputs)
    none = np.empty((0, hidden), np.float32)
    linear_backward(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)


@jit
@no_type_check
def _gru(e, weight_ih, weight_hh, bias_ih, bias_hh, gates, z):
    """Fill states and, for every row, r, u, n and q."""
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    bias = bias_ih.copy()
    bias[: 2 * hidden] += bias_hh[: 2 * hidden]
    projected = np.empty((steps, sets, 3 * hidden), np.float32)
    linear(e.reshape(rows, features), weight_ih, bias, projected.reshape(rows, 3 * hidden))
    transition = transposed(weight_hh)
    room = np.empty((BLOCK, 3 * hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps):
            multiply(z[t][begin:end], transition, room[: end - begin])
            for i in range(begin, end):
                s, a, gate = room[i - begin], projected[t, i], gates[t, i]
                before, after = z[t, i], z[t + 1, i]
                for j in range(hidden):
                    r = sigmoid(a[j] + s[j])
                    u = sigmoid(a[hidden + j] + s[hidden + j])
                    q = s[2 * hidden + j] + bias_hh[2 * hidden + j]
                    n = tanh(a[2 * hidden + j] + r * q)
                    gate[j], gate[hidden + j] = r, u
                    gate[2 * hidden + j], gate[3 * hidden + j] = n, q
                    after[j] = n + u * (before[j] - n)


@jit
@no_type_check
def _gru_backward(
    dz, e, weight_ih, weight_hh, gates, z, de, dh, dweight_ih, dweight_hh, dbias_ih, dbias_hh
):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    # Gradients of r, u, n reach the features; those of r, u, q the state.
    to_features = np.empty((steps, sets, 3 * hidden), np.float32)
    to_state = np.empty((steps, sets, 3 * hidden), np.float32)
    room = np.empty((BLOCK, hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                gate, before, arriving, later = gates[t, i], z[t, i], dz[t, i], dh[i]
                to_e, to_z = to_features[t, i], to_state[t, i]
                for j in range(hidden):
                    u, n = gate[hidden + j], gate[2 * hidden + j]
                    state = later[j] + arriving[j]
                    dn = state * (one - u) * (one - n * n)
                    du = state * (before[j] - n) * u * (one - u)
                    to_e[hidden + j], to_z[hidden + j] = du, du
                    to_e[2 * hidden + j] = dn
                    later[j] = state * u
                for j in range(hidden):
                    r, q, dn = gate[j], gate[3 * hidden + j], to_e[2 * hidden + j]
                    dr = dn * q * r * (one - r)
                    to_e[j], to_z[j], to_z[2 * hidden + j] = dr, dr, dn * r
            multiply(to_state[t][begin:end], weight_hh, room[: end - begin])
            for i in range(begin, end):
                for j in range(hidden):
                    dh[i, j] += room[i - begin, j]
    flat = to_features.reshape(rows, 3 * hidden)
    sum_rows(flat, dbias_ih)
    inputs, dinputs = e.reshape(rows, features), de.reshape(-1, features)
    linear_backward(flat, inputs, weight_ih, dweight_ih, dinputs)
    flat = to_state.reshape(rows, 3 * hidden)
    sum_rows(flat, dbias_hh)
    none = np.empty((0, hidden), np.float32)
    linear_backward(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)


@jit
@no_type_check
def _lstm(e, weight_ih, weight_hh, bias, gates, z, memory):
    """Fill states, memories and, for every row, k, f, g and o."""
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    linear(e.reshape(rows, features), weight_ih, bias, gates.reshape(rows, 4 * hidden))
    transition = transposed(weight_hh)
    room = np.empty((BLOCK, 4 * hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps):
            multiply(z[t][begin:end], transition, room[: end - begin])
            for i in range(begin, end):
                s, gate = room[i - begin], gates[t, i]
                had, have, after = memory[t, i], memory[t + 1, i], z[t + 1, i]
                for j in range(hidden):
                    k = sigmoid(gate[j] + s[j])
                    f = sigmoid(gate[hidden + j] + s[hidden + j])
                    g = tanh(gate[2 * hidden + j] + s[2 * hidden + j])
                    o = sigmoid(gate[3 * hidden + j] + s[3 * hidden + j])
                    gate[j], gate[hidden + j] = k, f
                    gate[2 * hidden + j], gate[3 * hidden + j] = g, o
                    have[j] = f * had[j] + k * g
                    after[j] = o * tanh(have[j])


@jit
@no_type_check
def _lstm_backward(
    dz, e, weight_ih, weight_hh, gates, z, memory, de, dh, dc, dweight_ih, dweight_hh, dbias
):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    d = np.empty((steps, sets, 4 * hidden), np.float32)
    for begin in range(0, sets, BLOCK):
        end = min(begin + BLOCK, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                gate, had, have, step = gates[t, i], memory[t, i], memory[t + 1, i], d[t, i]
                arriving, later, kept = dz[t, i], dh[i], dc[i]
                for j in range(hidden):
                    state, shown = later[j] + arriving[j], tanh(have[j])
                    o = gate[3 * hidden + j]
                    kept[j] += state * o * (one - shown * shown)
                    step[3 * hidden + j] = state * shown * o * (one - o)
                for j in range(hidden):
                    k, f, g, keep = gate[j], gate[hidden + j], gate[2 * hidden + j], kept[j]
                    step[j] = keep * g * k * (one - k)
                    step[hidden + j] = keep * had[j] * f * (one - f)
                    step[2 * hidden + j] = keep * k * (one - g * g)
                    kept[j] = keep * f
            multiply(d[t][begin:end], weight_hh, dh[begin:end])
    flat = d.reshape(rows, 4 * hidden)
    sum_rows(flat, dbias)
    inputs, dinputs = e.reshape(rows, features), de.reshape(-1, features)
    linear_backward(flat, inputs, weight_ih, dweight_ih, dinputs)
    none = np.empty((0, hidden), np.float32)
    linear_backward(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)
