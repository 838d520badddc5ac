"""The steps of recurrent cells compiled: those of `operations`, for few sets.

A step goes through the sets one by one and does all that is to be done for one of them while its
features are in the registers. Needs numba, which finds types out itself. float32 only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, no_type_check

import numba
import numpy as np
from torch import Tensor

__all__ = [
    "gru_backward",
    "gru_forward",
    "lstm_backward",
    "lstm_forward",
    "rnn_backward",
    "rnn_forward",
]

one = np.float32(1)
two = np.float32(2)
zero = np.float32(0)

# Sums may use fused multiply-adds, but are never reordered: the same bits again.
FREE = {"contract", "nsz"}
inlined = numba.njit(inline="always", fastmath=FREE, error_model="numpy")


def loop(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a function of arrays when it is called first, to be called with tensors."""
    compiled: Any = numba.njit(nogil=True, fastmath=FREE, error_model="numpy")(function)
    with suppress(RuntimeError):  # no folder to keep it in: it is compiled anew next time
        compiled.enable_caching()

    @wraps(function)
    def over_memory(*tensors: Tensor) -> None:
        # The same memory: what is written to lies in one piece already.
        compiled(*[t.detach().contiguous().numpy() for t in tensors])

    return over_memory


# exp x = 2^n exp r with n whole and |r| <= log(2) / 2. The logarithm is cut in two parts, of which
# the first has few digits, so that n times it is exact.
LOG2_E = np.float32(1 / np.log(2))
LOG_2 = np.float32(0.693359375)
LOG_2_REST = np.float32(np.log(2) - 0.693359375)
FACTORIALS = tuple(np.float32(1 / n) for n in (5040, 720, 120, 24, 6, 2))
LARGEST = np.float32(87)  # beyond, a float32 ends, and a gate has long been open or closed


@inlined
@no_type_check
def _sigmoid(x):
    """Nothing but arithmetic, so that eight are computed at once; right to three last digits."""
    x = min(max(-x, -LARGEST), LARGEST)
    n = np.floor(x * LOG2_E + np.float32(0.5))
    r = x - n * LOG_2 - n * LOG_2_REST
    a, b, c, d, e, f = FACTORIALS
    series = ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + one) * r + one
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return one / (one + series * power)


@inlined
@no_type_check
def _multiply(into, row, matrix):
    """Add the product of a row and a matrix; four of its rows at a time."""
    whole = len(row) - len(row) % 4
    for k in range(0, whole, 4):
        a, b, c, d = row[k], row[k + 1], row[k + 2], row[k + 3]
        for j in range(matrix.shape[1]):
            into[j] += (
                a * matrix[k, j]
                + b * matrix[k + 1, j]
                + c * matrix[k + 2, j]
                + d * matrix[k + 3, j]
            )
    for k in range(whole, len(row)):
        a = row[k]
        for j in range(matrix.shape[1]):
            into[j] += a * matrix[k, j]


@loop
@no_type_check
def rnn_forward(a, z, transition):
    """From twice the preactivations of features to states."""
    steps, sets, hidden = a.shape
    for t in range(steps):
        for i in range(sets):
            s, after = a[t, i], z[t + 1, i]
            _multiply(s, z[t, i], transition)
            for j in range(hidden):
                after[j] = two * _sigmoid(s[j]) - one


@loop
@no_type_check
def rnn_backward(d, dz, z, weight, dh):
    """Derivatives of preactivations, from those of states."""
    steps, sets, hidden = d.shape
    for t in range(steps - 1, -1, -1):
        for i in range(sets):
            step, before, state, arriving = d[t, i], dh[i], z[t + 1, i], dz[t, i]
            for j in range(hidden):
                step[j] = (before[j] + arriving[j]) * (one - state[j] * state[j])
                before[j] = zero
            _multiply(before, step, weight)


@loop
@no_type_check
def gru_forward(run, q, z, transition, bias):
    """From preactivations of features (for n twice) to gates and states."""
    steps, sets, hidden = q.shape
    s = np.empty(3 * hidden, np.float32)
    for t in range(steps):
        for i in range(sets):
            before, after = z[t, i], z[t + 1, i]
            r, u, n, past = run[0, t, i], run[1, t, i], run[2, t, i], q[t, i]
            s[:] = zero
            _multiply(s, before, transition)
            for j in range(hidden):
                reset = _sigmoid(r[j] + s[j])
                update = _sigmoid(u[j] + s[hidden + j])
                kept = bias[j] + s[2 * hidden + j]
                new = two * _sigmoid(n[j] + two * reset * kept) - one
                r[j], u[j], n[j], past[j] = reset, update, new, kept
                after[j] = new + update * (before[j] - new)


@loop
@no_type_check
def gru_backward(d, dz, run, q, z, weight, dh):
    """Derivatives of q, r, u and n, from those of states and all that the way forward left."""
    steps, sets, hidden = q.shape
    s = np.empty(3 * hidden, np.float32)
    for t in range(steps - 1, -1, -1):
        for i in range(sets):
            dq, dr, du, dn = d[0, t, i], d[1, t, i], d[2, t, i], d[3, t, i]
            r, u, n, past, had = run[0, t, i], run[1, t, i], run[2, t, i], q[t, i], z[t, i]
            before, arriving = dh[i], dz[t, i]
            for j in range(hidden):
                state = before[j] + arriving[j]
                new = state * (one - u[j]) * (one - n[j] * n[j])
                dn[j] = new
                s[j] = new * past[j] * r[j] * (one - r[j])
                s[hidden + j] = state * (had[j] - n[j]) * u[j] * (one - u[j])
                s[2 * hidden + j] = new * r[j]
                dr[j], du[j], dq[j] = s[j], s[hidden + j], s[2 * hidden + j]
                before[j] = state * u[j]
            _multiply(before, s, weight)


@loop
@no_type_check
def lstm_forward(kfgo, shown, z, memory, transition):
    """From preactivations of features (for g twice) to gates, memories and states."""
    steps, sets, hidden = shown.shape
    s = np.empty(4 * hidden, np.float32)
    for t in range(steps):
        for i in range(sets):
            k, f, g, o = kfgo[0, t, i], kfgo[1, t, i], kfgo[2, t, i], kfgo[3, t, i]
            had, have, show, after = memory[t, i], memory[t + 1, i], shown[t, i], z[t + 1, i]
            s[:] = zero
            _multiply(s, z[t, i], transition)
            for j in range(hidden):
                admit = _sigmoid(k[j] + s[j])
                forget = _sigmoid(f[j] + s[hidden + j])
                offered = two * _sigmoid(g[j] + s[2 * hidden + j]) - one
                out = _sigmoid(o[j] + s[3 * hidden + j])
                keep = forget * had[j] + admit * offered
                seen = two * _sigmoid(two * keep) - one
                k[j], f[j], g[j], o[j] = admit, forget, offered, out
                have[j], show[j], after[j] = keep, seen, out * seen


@loop
@no_type_check
def lstm_backward(d, dz, kfgo, shown, memory, weight, dh, dc):
    """Derivatives of k, f, g and o, from those of states and all that the way forward left."""
    steps, sets, hidden = shown.shape
    s = np.empty(4 * hidden, np.float32)
    for t in range(steps - 1, -1, -1):
        for i in range(sets):
            dk, df, dg, do = d[0, t, i], d[1, t, i], d[2, t, i], d[3, t, i]
            k, f, g, o = kfgo[0, t, i], kfgo[1, t, i], kfgo[2, t, i], kfgo[3, t, i]
            show, had, before, arriving, kept = shown[t, i], memory[t, i], dh[i], dz[t, i], dc[i]
            for j in range(hidden):
                state = before[j] + arriving[j]
                keep = kept[j] + state * o[j] * (one - show[j] * show[j])
                s[j] = keep * g[j] * k[j] * (one - k[j])
                s[hidden + j] = keep * had[j] * f[j] * (one - f[j])
                s[2 * hidden + j] = keep * k[j] * (one - g[j] * g[j])
                s[3 * hidden + j] = state * show[j] * o[j] * (one - o[j])
                dk[j], df[j] = s[j], s[hidden + j]
                dg[j], do[j] = s[2 * hidden + j], s[3 * hidden + j]
                kept[j] = keep * f[j]
                before[j] = zero
            _multiply(before, s, weight)
