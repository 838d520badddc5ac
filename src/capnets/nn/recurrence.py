r"""Recurrent cells over whole sets, with their derivatives written out.

On a CPU `torch.nn.GRU` and its siblings record about ten small operations per step and
differentiate each of them again. Here a step is a few products and operations in place, and a
step back is shorter still: the derivative of every preactivation is the derivative :math:`∂z_i`
of the state (for an LSTM also that of its memory) times factors that are known once the forward
pass is done. So the factors of all steps are computed at once, a step back multiplies by them and
by the matrices, and the gradient of every weight is one product over all steps.

Arrays are gates x steps x sets x features: what one operation reads is then one block of memory.
Parameters are those of the torch modules, gate for gate, and so are the results up to rounding;
:math:`\tanh a` is computed as :math:`2σ(2a) - 1`, which takes a third of the time.
Where sets are few, the steps themselves are those of `loops`, compiled: same arrays, same order.
The functions can be differentiated once (see `derivatives`).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from capnets.nn.compiled import compiled_loops
from capnets.nn.derivatives import Gradients, once, through_sigmoid, through_tanh

__all__ = ["gru", "lstm", "rnn"]

Steps = Float[Tensor, "steps sets features"]
States = Float[Tensor, "steps sets hidden"]
State = Float[Tensor, "sets hidden"]


def rnn(e: Steps, h: State, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor) -> States:
    """All states of a tanh cell with one bias vector, from features and the state before."""
    z: Tensor = _RNN.apply(e, h, weight_ih, weight_hh, bias)  # type: ignore[no-untyped-call]
    return z


def gru(e: Steps, h: State, *parameters: Tensor) -> States:
    """All states of `torch.nn.GRU`, from features, the state before and the module's parameters."""
    z: Tensor = _GRU.apply(e, h, *parameters)  # type: ignore[no-untyped-call]
    return z


def lstm(e: Steps, h: State, c: State, *parameters: Tensor) -> tuple[States, State]:
    """All states of `torch.nn.LSTM` and its last memory; `h` and `c` are what was before."""
    z, memory = _LSTM.apply(e, h, c, *parameters)  # type: ignore[no-untyped-call]
    return z, memory


class _RNN(Function):
    @staticmethod
    def forward(
        ctx: Any, e: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor
    ) -> Tensor:
        z = _room(e, h)
        minus = e.new_tensor(-1.0)
        transition = 2 * weight_hh.t()
        (a,) = _project(e, 2 * weight_ih[None], 2 * bias[None])
        if loops := compiled_loops(h):
            loops.rnn_forward(*_arrays(a, z, transition))
        else:
            before, *states = z.unbind()
            for s, after in zip(a.unbind(), states, strict=True):
                s.addmm_(before, transition).sigmoid_()
                before = torch.add(minus, s, alpha=2, out=after)
        ctx.save_for_backward(e, weight_ih, weight_hh, z)
        return z[1:]

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z = ctx.saved_tensors
        d = z.new_empty(dz.shape)
        if loops := compiled_loops(z[0]):
            dh = torch.zeros_like(z[0])
            loops.rnn_backward(*_arrays(d, dz, z, weight_hh, dh))
        else:
            dh, *earlier = reversed(dz.unbind())
            for step, after in zip(reversed(d.unbind()), reversed(z.unbind()), strict=False):
                through_tanh(dh, after, grad_input=step)
                dh = torch.addmm(earlier.pop(0), step, weight_hh) if earlier else step @ weight_hh
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
        minus = e.new_tensor(-1.0)
        scale = e.new_tensor([1.0, 1.0, 2.0])[:, None]
        _, _, bias_q = both = bias_hh.view(3, -1)
        bias = bias_ih.view(3, -1) + torch.cat([both[:2], torch.zeros_like(both[:1])])
        run = _project(e, scale[:, None] * _gates(weight_ih, 3), scale * bias)
        q = torch.empty_like(run[0])
        if loops := compiled_loops(h):
            loops.gru_forward(*_arrays(run, q, z, weight_hh.t(), bias_q))
        else:
            to_r, to_u, to_q = _gates(weight_hh, 3).mT
            before, *states = z.unbind()
            steps = zip(run[:2].unbind(1), *map(torch.unbind, run), q.unbind(), states, strict=True)
            for ru, r, u, n, past, after in steps:
                r.addmm_(before, to_r)
                u.addmm_(before, to_u)
                ru.sigmoid_()
                torch.addmm(bias_q, before, to_q, out=past)
                n.addcmul_(r, past, value=2).sigmoid_()
                torch.add(minus, n, alpha=2, out=n)
                before = torch.lerp(n, before, u, out=after)
        ctx.save_for_backward(e, weight_ih, weight_hh, z, run, q)
        return z[1:]

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z, run, q = ctx.saved_tensors
        # Of q, r, u, n in this order: the first three meet weight_hh, the last three weight_ih.
        d = q.new_empty(4, *q.shape)
        if loops := compiled_loops(z[0]):
            dh = torch.zeros_like(z[0])
            loops.gru_backward(*_arrays(d, dz, run, q, z, weight_hh, dh))
        else:
            (r, u, n), (dq, dr, du, dn) = run, d
            through_tanh(1 - u, n, grad_input=dn)
            torch.mul(dn, r, out=dq)
            through_sigmoid(torch.mul(dn, q, out=du), r, grad_input=dr)
            through_sigmoid(z[:-1] - n, u, grad_input=du)
            from_r, from_u, from_q = _gates(weight_hh, 3)
            dh, *earlier = reversed(dz.unbind())
            steps = zip(d.unbind(1), *map(torch.unbind, (dq, dr, du, u)), strict=True)
            for all_four, sq, sr, su, kept in reversed([*steps]):
                all_four.mul_(dh)
                dh = torch.addcmul(earlier.pop(0), dh, kept) if earlier else dh * kept
                dh.addmm_(sq, from_q).addmm_(sr, from_r).addmm_(su, from_u)
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
        minus = e.new_tensor(-1.0)
        scale = e.new_tensor([1.0, 1.0, 2.0, 1.0])[:, None]
        bias = (bias_ih + bias_hh).view(4, -1)
        kfgo = _project(e, scale[:, None] * _gates(weight_ih, 4), scale * bias)
        shown = torch.empty_like(kfgo[0])
        transitions = scale[:, None] * _gates(weight_hh, 4)
        if loops := compiled_loops(h):
            loops.lstm_forward(*_arrays(kfgo, shown, z, memory, transitions.flatten(0, 1).t()))
        else:
            (before, *states), (kept, *memories) = z.unbind(), memory.unbind()
            views = kfgo.unbind(1), *map(torch.unbind, kfgo), shown.unbind(), states, memories
            for gates, k, f, g, o, squashed, after, keep in zip(*views, strict=True):
                for gate, transition in zip((k, f, g, o), transitions.mT, strict=True):
                    gate.addmm_(before, transition)
                gates.sigmoid_()
                torch.add(minus, g, alpha=2, out=g)
                kept = torch.mul(f, kept, out=keep).addcmul_(k, g)
                torch.mul(kept, 2, out=squashed).sigmoid_()
                torch.add(minus, squashed, alpha=2, out=squashed)
                before = torch.mul(o, squashed, out=after)
        ctx.save_for_backward(e, weight_ih, weight_hh, z, kfgo, memory, shown)
        return z[1:], memory[-1].clone()

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor, dc: Tensor) -> Gradients:
        e, weight_ih, weight_hh, z, kfgo, memory, shown = ctx.saved_tensors
        d = torch.empty_like(kfgo)
        dc = dc.clone(memory_format=torch.contiguous_format)
        if loops := compiled_loops(z[0]):
            dh = torch.zeros_like(z[0])
            loops.lstm_backward(*_arrays(d, dz, kfgo, shown, memory, weight_hh, dh, dc))
        else:
            (k, f, g, o), (dk, df, dg, do) = kfgo, d
            through_sigmoid(g, k, grad_input=dk)
            through_sigmoid(memory[:-1], f, grad_input=df)
            through_tanh(k, g, grad_input=dg)
            through_sigmoid(shown, o, grad_input=do)
            to_memory = torch.ops.aten.tanh_backward(o, shown)
            from_k, from_f, from_g, from_o = _gates(weight_hh, 4)
            dh, *earlier = reversed(dz.unbind())
            views = d[:3].unbind(1), *map(torch.unbind, (*d, to_memory, f))
            for kfg, sk, sf, sg, so, shows, kept in reversed([*zip(*views, strict=True)]):
                kfg.mul_(dc.addcmul_(dh, shows))
                so.mul_(dh)
                dc.mul_(kept)
                dh = torch.addmm(earlier.pop(0), sk, from_k) if earlier else sk @ from_k
                dh.addmm_(sf, from_f).addmm_(sg, from_g).addmm_(so, from_o)
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


def _arrays(*tensors: Tensor) -> list[Any]:
    """The same memory for compiled steps; what they write to lies in one piece already."""
    return [t.detach().contiguous().numpy() for t in tensors]


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
    return torch.baddbmm(biases[:, None], flat, weights.mT).view(len(weights), *e.shape[:2], -1)


def _to_features(d: Tensor, weight: Tensor) -> Tensor:
    """From the derivatives of the preactivations to those of the features."""
    first, *others = zip(d.flatten(1, 2), _gates(weight, len(d)), strict=True)
    de = torch.mm(*first)
    for gate in others:
        de.addmm_(*gate)
    return de.view(*d.shape[1:3], -1)


def _to_weight(d: Tensor, inputs: Tensor) -> Tensor:
    """... to those of the matrices that `inputs` were multiplied by."""
    flat = inputs.flatten(0, 1).expand(len(d), -1, -1)
    return torch.bmm(d.flatten(1, 2).mT, flat).flatten(0, 1)


def _to_bias(d: Tensor) -> Tensor:
    """... to those of the vectors that were added."""
    return d.sum((1, 2)).flatten()
