"""Recurrent cells, compiled: the functions of `capnets.nn.recurrence.operations`, for float32.

Features are multiplied by the matrices of all gates beforehand, and derivatives of weights are
products over all instances afterwards; between, some sets go through all steps, then the next ones,
so that their states stay in the cache. Gates of an instance lie beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import no_type_check

import numpy as np
import torch
from torch import Tensor

from capnets.nn import parts
from capnets.nn.derivatives import Gradients
from capnets.nn.kernels.loops import loop, one, sigmoid, tanh
from capnets.nn.kernels.products import at_once, back, project, times, total_of_rows
from capnets.nn.parts import memory_of

__all__ = [
    "gru_backward",
    "gru_forward",
    "lstm_backward",
    "lstm_forward",
    "rnn_backward",
    "rnn_forward",
]

Kept = tuple[Tensor, ...]


def rnn_forward(e: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> Kept:
    """All states, with the one before in front, and what else is needed on the way back."""
    e, z = e.contiguous(), _room(e, h)
    _call(_rnn, e, weight_ih, weight_hh, bias, z)
    return z, e, weight_ih, weight_hh


def rnn_backward(
    dz: Tensor, z: Tensor, e: Tensor, weight_ih: Tensor, weight_hh: Tensor, *, wanted: bool
) -> Gradients:
    """Derivatives of features, if they are wanted, of the state before, and of parameters."""
    de, dh = _room_for(e, wanted), torch.zeros(z.shape[1:])
    parameters = [_empty(p.shape) for p in (weight_ih, weight_hh, weight_hh[0])]
    _call(_rnn_back, dz, e, weight_ih, weight_hh, z, de, dh, *parameters)
    return de if wanted else None, dh, *parameters


def gru_forward(
    e: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor
) -> Kept:
    """Gates r and u; q = U z + c, of which r lets a part pass; n = tanh(W e + b + r q)."""
    e, z = e.contiguous(), _room(e, h)
    gates = _empty((*e.shape[:2], 4 * h.shape[1]))
    _call(_gru, e, weight_ih, weight_hh, bias_ih, bias_hh, gates, z)
    return z, e, weight_ih, weight_hh, gates


def gru_backward(
    dz: Tensor,
    z: Tensor,
    e: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    gates: Tensor,
    *,
    wanted: bool,
) -> Gradients:
    """Derivatives of features, if they are wanted, of the state before, and of parameters."""
    de, dh = _room_for(e, wanted), torch.zeros(z.shape[1:])
    parameters = [_empty(p.shape) for p in (weight_ih, weight_hh)]
    parameters += [_empty((len(weight_hh),)) for _ in range(2)]
    _call(_gru_back, dz, e, weight_ih, weight_hh, gates, z, de, dh, *parameters)
    return de if wanted else None, dh, *parameters


def lstm_forward(
    e: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
) -> Kept:
    """Gates k, f and o; g is offered to the memory c = f c + k g, of which o shows tanh(c)."""
    e, z, memory = e.contiguous(), _room(e, h), _room(e, c)
    gates = _empty((*e.shape[:2], 4 * h.shape[1]))
    _call(_lstm, e, weight_ih, weight_hh, bias_ih + bias_hh, gates, z, memory)
    return z, memory, e, weight_ih, weight_hh, gates


def lstm_backward(
    dz: Tensor,
    dc: Tensor | None,
    z: Tensor,
    memory: Tensor,
    e: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    gates: Tensor,
    *,
    wanted: bool,
) -> Gradients:
    """Derivatives of features, if they are wanted, of state and memory before, of parameters."""
    de, dh = _room_for(e, wanted), torch.zeros(z.shape[1:])
    dc = dh.clone() if dc is None else dc.clone(memory_format=torch.contiguous_format)
    parameters = [_empty(p.shape) for p in (weight_ih, weight_hh)]
    bias = _empty((len(weight_hh),))
    _call(_lstm_back, dz, e, weight_ih, weight_hh, gates, z, memory, de, dh, dc, *parameters, bias)
    return de if wanted else None, dh, dc, *parameters, bias, bias.clone()


def _empty(shape: Sequence[int]) -> Tensor:
    return torch.from_numpy(parts.empty(*shape))


def _call(loops, *tensors: Tensor) -> None:  # type: ignore[no-untyped-def]
    loops(*map(memory_of, tensors))


def _room(e: Tensor, before: Tensor) -> Tensor:
    """Room for all states, with the one before the first step in front."""
    z = _empty((len(e) + 1, *before.shape))
    z[0] = before
    return z


def _room_for(e: Tensor, wanted: bool) -> Tensor:
    """Room for the derivatives of features, or for none."""
    return _empty(e.shape if wanted else (0, *e.shape[1:]))


@loop
@no_type_check
def _rnn(e, weight_ih, weight_hh, bias, z):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, len(weight_hh)
    after = z[1:].reshape(rows, hidden)
    project(e.reshape(rows, features), weight_ih, bias, after)
    transition = weight_hh.T.copy()
    some = at_once(weight_hh.size)
    room = np.empty((some, hidden), np.float32)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps):
            times(z[t][begin:end], transition, room[: end - begin])
            for i in range(begin, end):
                s, state = room[i - begin], z[t + 1, i]
                for j in range(hidden):
                    state[j] = tanh(state[j] + s[j])


@loop
@no_type_check
def _rnn_back(dz, e, weight_ih, weight_hh, z, de, dh, dweight_ih, dweight_hh, dbias):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, len(weight_hh)
    d = np.empty((steps, sets, hidden), np.float32)
    some = at_once(weight_hh.size)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                step, state, arriving, later = d[t, i], z[t + 1, i], dz[t, i], dh[i]
                for j in range(hidden):
                    step[j] = (later[j] + arriving[j]) * (one - state[j] * state[j])
            times(d[t][begin:end], weight_hh, dh[begin:end])
    flat = d.reshape(rows, hidden)
    total_of_rows(flat, dbias)
    back(flat, e.reshape(rows, features), weight_ih, dweight_ih, de.reshape(-1, features))
    none = np.empty((0, hidden), np.float32)
    back(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)


@loop
@no_type_check
def _gru(e, weight_ih, weight_hh, bias_ih, bias_hh, gates, z):
    """Of every row r, u, n and q are kept."""
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    bias = bias_ih.copy()
    bias[: 2 * hidden] += bias_hh[: 2 * hidden]
    projected = np.empty((steps, sets, 3 * hidden), np.float32)
    project(e.reshape(rows, features), weight_ih, bias, projected.reshape(rows, 3 * hidden))
    transition = weight_hh.T.copy()
    some = at_once(weight_hh.size)
    room = np.empty((some, 3 * hidden), np.float32)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps):
            times(z[t][begin:end], transition, room[: end - begin])
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


@loop
@no_type_check
def _gru_back(
    dz, e, weight_ih, weight_hh, gates, z, de, dh, dweight_ih, dweight_hh, dbias_ih, dbias_hh
):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    # Of r, u, n to the features, of r, u, q to the state.
    to_features = np.empty((steps, sets, 3 * hidden), np.float32)
    to_state = np.empty((steps, sets, 3 * hidden), np.float32)
    some = at_once(weight_hh.size)
    room = np.empty((some, hidden), np.float32)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                gate, before, arriving, later = gates[t, i], z[t, i], dz[t, i], dh[i]
                to_e, to_z = to_features[t, i], to_state[t, i]
                for j in range(hidden):
                    r, u = gate[j], gate[hidden + j]
                    n, q = gate[2 * hidden + j], gate[3 * hidden + j]
                    state = later[j] + arriving[j]
                    dn = state * (one - u) * (one - n * n)
                    dr = dn * q * r * (one - r)
                    du = state * (before[j] - n) * u * (one - u)
                    to_e[j], to_e[hidden + j], to_e[2 * hidden + j] = dr, du, dn
                    to_z[j], to_z[hidden + j], to_z[2 * hidden + j] = dr, du, dn * r
                    later[j] = state * u
            times(to_state[t][begin:end], weight_hh, room[: end - begin])
            for i in range(begin, end):
                for j in range(hidden):
                    dh[i, j] += room[i - begin, j]
    flat = to_features.reshape(rows, 3 * hidden)
    total_of_rows(flat, dbias_ih)
    back(flat, e.reshape(rows, features), weight_ih, dweight_ih, de.reshape(-1, features))
    flat = to_state.reshape(rows, 3 * hidden)
    total_of_rows(flat, dbias_hh)
    none = np.empty((0, hidden), np.float32)
    back(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)


@loop
@no_type_check
def _lstm(e, weight_ih, weight_hh, bias, gates, z, memory):
    """Of every row k, f, g and o are kept."""
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    project(e.reshape(rows, features), weight_ih, bias, gates.reshape(rows, 4 * hidden))
    transition = weight_hh.T.copy()
    some = at_once(weight_hh.size)
    room = np.empty((some, 4 * hidden), np.float32)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps):
            times(z[t][begin:end], transition, room[: end - begin])
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


@loop
@no_type_check
def _lstm_back(
    dz, e, weight_ih, weight_hh, gates, z, memory, de, dh, dc, dweight_ih, dweight_hh, dbias
):
    steps, sets, features = e.shape
    rows, hidden = steps * sets, z.shape[2]
    d = np.empty((steps, sets, 4 * hidden), np.float32)
    some = at_once(weight_hh.size)
    for begin in range(0, sets, some):
        end = min(begin + some, sets)
        for t in range(steps - 1, -1, -1):
            for i in range(begin, end):
                gate, had, have, step = gates[t, i], memory[t, i], memory[t + 1, i], d[t, i]
                arriving, later, kept = dz[t, i], dh[i], dc[i]
                for j in range(hidden):
                    k, f = gate[j], gate[hidden + j]
                    g, o = gate[2 * hidden + j], gate[3 * hidden + j]
                    state, shown = later[j] + arriving[j], tanh(have[j])
                    keep = kept[j] + state * o * (one - shown * shown)
                    step[j] = keep * g * k * (one - k)
                    step[hidden + j] = keep * had[j] * f * (one - f)
                    step[2 * hidden + j] = keep * k * (one - g * g)
                    step[3 * hidden + j] = state * shown * o * (one - o)
                    kept[j] = keep * f
            times(d[t][begin:end], weight_hh, dh[begin:end])
    flat = d.reshape(rows, 4 * hidden)
    total_of_rows(flat, dbias)
    back(flat, e.reshape(rows, features), weight_ih, dweight_ih, de.reshape(-1, features))
    none = np.empty((0, hidden), np.float32)
    back(flat, z[:steps].reshape(rows, hidden), weight_hh, dweight_hh, none)
