r"""Recurrent cells over whole sets, with their derivatives written out.

On a CPU `torch.nn.GRU` and its siblings record about ten small operations per instance and
differentiate each of them again. Here only what must go one instance after another does so
(`steps`): features are multiplied by the matrices of all gates beforehand, and the gradient of
every weight is one product over all instances afterwards.

Arrays are gates x steps x sets x features: what one operation reads is then one block of memory.
Parameters are those of the torch modules, gate for gate, and so are the results up to rounding;
:math:`\tanh a` is computed as :math:`2σ(2a) - 1`, which takes a third of the time.
The functions can be differentiated once (see `derivatives`).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from capnets.errors import InputError
from capnets.nn.derivatives import Gradients, once
from capnets.nn.steps import steps_for

__all__ = ["gru", "lstm", "rnn"]

Steps = Float[Tensor, "steps sets features"]
States = Float[Tensor, "steps sets hidden"]
State = Float[Tensor, "sets hidden"]


def rnn(e: Steps, h: State, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> States:
    """All states of a tanh cell with one bias vector, from features and the state before."""
    _check(e, h, parameters=(weight_ih, weight_hh, bias), gates=1)
    z: Tensor = _RNN.apply(e, h, weight_ih, weight_hh, bias)  # type: ignore[no-untyped-call]
    return z


def gru(e: Steps, h: State, *parameters: Tensor) -> States:
    """All states of `torch.nn.GRU`, from features, the state before and the module's parameters."""
    _check(e, h, parameters=parameters, gates=3)
    z: Tensor = _GRU.apply(e, h, *parameters)  # type: ignore[no-untyped-call]
    return z


def lstm(e: Steps, h: State, c: State, *parameters: Tensor) -> tuple[States, State]:
    """All states of `torch.nn.LSTM` and its last memory; `h` and `c` are what was before."""
    _check(e, h, c, parameters=parameters, gates=4)
    z, memory = _LSTM.apply(e, h, c, *parameters)  # type: ignore[no-untyped-call]
    return z, memory


class _RNN(Function):
    @staticmethod
    def forward(
        ctx: Any, e: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor
    ) -> Tensor:
        z = _room(e, h)
        (a,) = _project(e, 2 * weight_ih[None], 2 * bias[None])
        steps_for(h).rnn_forward(a, z, 2 * weight_hh.t())
        ctx.save_for_backward(e, weight_ih, weight_hh, z)
        return z[1:]

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z = ctx.saved_tensors
        d = z.new_empty(dz.shape)
        dh = torch.zeros_like(z[0])
        steps_for(dh).rnn_backward(d, dz, z, weight_hh, dh)
        d = d[None]
        return (
            _to_features(d, weight_ih) if ctx.needs_input_grad[0] else None,
            dh,
            _to_weight(d, e),
            _to_weight(d, z[:-1]),
            _to_bias(d),
        )


class _GRU(Function):
    """Gates r and u; q = U z + c, of which r lets a part pass; n = tanh(W e + b + r q)."""

    @staticmethod
    def forward(
        ctx: Any,
        e: Tensor,
        h: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> Tensor:
        z = _room(e, h)
        scale = e.new_tensor([1.0, 1.0, 2.0])[:, None]
        _, _, bias_q = both = bias_hh.view(3, -1)
        bias = bias_ih.view(3, -1) + torch.cat([both[:2], torch.zeros_like(both[:1])])
        run = _project(e, scale[:, None] * _gates(weight_ih, 3), scale * bias)
        q = torch.empty_like(run[0])
        steps_for(h).gru_forward(run, q, z, weight_hh.t(), bias_q)
        ctx.save_for_backward(e, weight_ih, weight_hh, z, run, q)
        return z[1:]

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z, run, q = ctx.saved_tensors
        # Of q, r, u, n in this order: the first three meet weight_hh, the last three weight_ih.
        d = q.new_empty(4, *q.shape)
        dh = torch.zeros_like(z[0])
        steps_for(dh).gru_backward(d, dz, run, q, z, weight_hh, dh)
        hidden = q.shape[2]
        bias = _to_bias(d)
        return (
            _to_features(d[1:], weight_ih) if ctx.needs_input_grad[0] else None,
            dh,
            _to_weight(d[1:], e),
            _to_weight(d[:3], z[:-1]).roll(-hidden, 0),
            bias[hidden:],
            bias[:-hidden].roll(-hidden),
        )


class _LSTM(Function):
    """Gates k, f and o; g is offered to the memory c = f c + k g, of which o shows tanh(c)."""

    @staticmethod
    def forward(
        ctx: Any,
        e: Tensor,
        h: Tensor,
        c: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> tuple[Tensor, Tensor]:
        z, memory = _room(e, h), _room(e, c)
        scale = e.new_tensor([1.0, 1.0, 2.0, 1.0])[:, None]
        bias = (bias_ih + bias_hh).view(4, -1)
        kfgo = _project(e, scale[:, None] * _gates(weight_ih, 4), scale * bias)
        shown = torch.empty_like(kfgo[0])
        transition = (scale[:, None] * _gates(weight_hh, 4)).flatten(0, 1).t()
        steps_for(h).lstm_forward(kfgo, shown, z, memory, transition)
        ctx.save_for_backward(e, weight_ih, weight_hh, z, kfgo, memory, shown)
        return z[1:], memory[-1].clone()

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor, dc: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z, kfgo, memory, shown = ctx.saved_tensors
        d = torch.empty_like(kfgo)
        dh, dc = torch.zeros_like(z[0]), dc.clone(memory_format=torch.contiguous_format)
        steps_for(dh).lstm_backward(d, dz, kfgo, shown, memory, weight_hh, dh, dc)
        bias = _to_bias(d)
        return (
            _to_features(d, weight_ih) if ctx.needs_input_grad[0] else None,
            dh,
            dc,
            _to_weight(d, e),
            _to_weight(d, z[:-1]),
            bias,
            bias,
        )


def _check(e: Tensor, *states: Tensor, parameters: tuple[Tensor, ...], gates: int) -> None:
    """Refuse what does not fit together: compiled steps would write beside their memory.

    A cell holds features and states to its sizes, but its parameters may have been replaced.
    """
    _, sets, features = e.shape
    hidden = states[0].shape[-1]
    rows = gates * hidden
    biases = len(parameters) - 2
    expected: list[tuple[int, ...]] = [(sets, hidden)] * len(states)
    expected += [(rows, features), (rows, hidden), *[(rows,)] * biases]
    shapes = [tuple(t.shape) for t in (*states, *parameters)]
    if shapes != expected:
        raise InputError(
            f"states and parameters of a cell have shapes {shapes}, but for features of shape "
            f"{tuple(e.shape)} it must be {expected}"
        )
    kinds = {(t.dtype, t.device) for t in (e, *parameters)}
    if len(kinds) > 1:
        words = " and ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise InputError(f"a cell and its features are {words}: bring them together with `.to`")


def _room(e: Tensor, before: Tensor) -> Tensor:
    """Room for all states, with the one before the first step in front."""
    z = e.new_empty(len(e) + 1, *before.shape)
    z[0] = before
    return z


def _gates(weight: Tensor, gates: int) -> Tensor:
    """The matrices of the gates, which torch stacks in one."""
    return weight.view(gates, -1, weight.shape[1])


def _project(e: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """What the features give to the preactivations: gates x steps x sets x hidden."""
    flat = e.flatten(0, 1).expand(len(weights), -1, -1)
    hidden = weights.shape[1]
    return torch.baddbmm(biases[:, None], flat, weights.mT).view(len(weights), *e.shape[:2], hidden)


def _to_features(d: Tensor, weight: Tensor) -> Tensor:
    """From the derivatives of the preactivations to those of the features."""
    first, *others = zip(d.flatten(1, 2), _gates(weight, len(d)), strict=True)
    de = torch.mm(*first)
    for gate in others:
        de.addmm_(*gate)
    return de.view(*d.shape[1:3], weight.shape[1])


def _to_weight(d: Tensor, inputs: Tensor) -> Tensor:
    """... to those of the matrices that `inputs` were multiplied by."""
    flat = inputs.flatten(0, 1).expand(len(d), -1, -1)
    return torch.bmm(d.flatten(1, 2).mT, flat).flatten(0, 1)


def _to_bias(d: Tensor) -> Tensor:
    """... to those of the vectors that were added."""
    return d.sum((1, 2)).flatten()
