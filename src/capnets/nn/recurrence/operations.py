r"""Recurrent cells as operations of torch, most of them in place.

Only what must go one instance after another does so: features are multiplied by the matrices of all
gates beforehand, and the gradient of every weight is one product over all instances afterwards.

Arrays are gates x steps x sets x features: what one operation reads is then one block of memory.
:math:`\tanh a` is computed as :math:`2σ(2a) - 1`, which takes a third of the time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from capnets.nn.derivatives import Gradients, through_sigmoid, through_tanh

__all__ = [
    "Kept",
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
    z = _room(e, h)
    (a,) = _project(e, 2 * weight_ih[None], 2 * bias[None])
    _rnn_steps(a, z, 2 * weight_hh.t())
    return z, e, weight_ih, weight_hh


def rnn_backward(
    dz: Tensor, z: Tensor, e: Tensor, weight_ih: Tensor, weight_hh: Tensor, *, wanted: bool
) -> Gradients:
    """Derivatives of features, if they are wanted, of the state before, and of parameters."""
    d = z.new_empty(dz.shape)
    dh = torch.zeros_like(z[0])
    _rnn_steps_back(d, dz, z, weight_hh, dh)
    d = d[None]
    de = _to_features(d, weight_ih) if wanted else None
    return de, dh, _to_weight(d, e), _to_weight(d, z[:-1]), _to_bias(d)


def gru_forward(
    e: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor
) -> Kept:
    """Gates r and u; q = U z + c, of which r lets a part pass; n = tanh(W e + b + r q)."""
    z = _room(e, h)
    scale = e.new_tensor([1.0, 1.0, 2.0])[:, None]
    _, _, bias_q = both = bias_hh.view(3, -1)
    bias = bias_ih.view(3, -1) + torch.cat([both[:2], torch.zeros_like(both[:1])])
    run = _project(e, scale[:, None] * _gates(weight_ih, 3), scale * bias)
    q = torch.empty_like(run[0])
    _gru_steps(run, q, z, weight_hh.t(), bias_q)
    return z, e, weight_ih, weight_hh, run, q


def gru_backward(
    dz: Tensor,
    z: Tensor,
    e: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    run: Tensor,
    q: Tensor,
    *,
    wanted: bool,
) -> Gradients:
    """Derivatives of features, if they are wanted, of the state before, and of parameters."""
    # Of q, r, u, n in this order: the first three meet weight_hh, the last three weight_ih.
    d = q.new_empty(4, *q.shape)
    dh = torch.zeros_like(z[0])
    _gru_steps_back(d, dz, run, q, z, weight_hh, dh)
    hidden = q.shape[2]
    bias = _to_bias(d)
    return (
        _to_features(d[1:], weight_ih) if wanted else None,
        dh,
        _to_weight(d[1:], e),
        _to_weight(d[:3], z[:-1]).roll(-hidden, 0),
        bias[hidden:],
        bias[:-hidden].roll(-hidden),
    )


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
    z, memory = _room(e, h), _room(e, c)
    scale = e.new_tensor([1.0, 1.0, 2.0, 1.0])[:, None]
    bias = (bias_ih + bias_hh).view(4, -1)
    kfgo = _project(e, scale[:, None] * _gates(weight_ih, 4), scale * bias)
    shown = torch.empty_like(kfgo[0])
    transition = (scale[:, None] * _gates(weight_hh, 4)).flatten(0, 1).t()
    _lstm_steps(kfgo, shown, z, memory, transition)
    return z, memory, e, weight_ih, weight_hh, kfgo, shown


def lstm_backward(
    dz: Tensor,
    dc: Tensor | None,
    z: Tensor,
    memory: Tensor,
    e: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    kfgo: Tensor,
    shown: Tensor,
    *,
    wanted: bool,
) -> Gradients:
    """Derivatives of features, if they are wanted, of state and memory before, of parameters."""
    d = torch.empty_like(kfgo)
    dh = torch.zeros_like(z[0])
    dc = dh.clone() if dc is None else dc.clone(memory_format=torch.contiguous_format)
    _lstm_steps_back(d, dz, kfgo, shown, memory, weight_hh, dh, dc)
    bias = _to_bias(d)
    de = _to_features(d, weight_ih) if wanted else None
    return de, dh, dc, _to_weight(d, e), _to_weight(d, z[:-1]), bias, bias.clone()


def _rnn_steps(a: Tensor, z: Tensor, transition: Tensor) -> None:
    """From twice the preactivations of features to states."""
    minus = z.new_tensor(-1.0)
    before, *states = z.unbind()
    for s, after in zip(a.unbind(), states, strict=True):
        s.addmm_(before, transition).sigmoid_()
        before = torch.add(minus, s, alpha=2, out=after)


def _rnn_steps_back(d: Tensor, dz: Tensor, z: Tensor, weight: Tensor, dh: Tensor) -> None:
    """Derivatives of preactivations, and of the state before all, from those of states."""
    state, *earlier = reversed(dz.unbind())
    for step, after in zip(reversed(d.unbind()), reversed(z.unbind()), strict=False):
        through_tanh(state, after, grad_input=step)
        state = torch.addmm(earlier.pop(0), step, weight) if earlier else step @ weight
    dh.copy_(state)


def _gru_steps(run: Tensor, q: Tensor, z: Tensor, transition: Tensor, bias: Tensor) -> None:
    """From preactivations of features (for n twice) to gates and states."""
    minus = z.new_tensor(-1.0)
    to_r, to_u, to_q = transition.chunk(3, dim=1)
    before, *states = z.unbind()
    steps = zip(run[:2].unbind(1), *map(torch.unbind, run), q.unbind(), states, strict=True)
    for ru, r, u, n, past, after in steps:
        r.addmm_(before, to_r)
        u.addmm_(before, to_u)
        ru.sigmoid_()
        torch.addmm(bias, before, to_q, out=past)
        n.addcmul_(r, past, value=2).sigmoid_()
        torch.add(minus, n, alpha=2, out=n)
        before = torch.lerp(n, before, u, out=after)


def _gru_steps_back(
    d: Tensor, dz: Tensor, run: Tensor, q: Tensor, z: Tensor, weight: Tensor, dh: Tensor
) -> None:
    """Derivatives of q, r, u and n, and of the state before all, from those of states.

    Factors of all steps are computed at once: a step multiplies by them and by the matrices.
    """
    (r, u, n), (dq, dr, du, dn) = run, d
    through_tanh(1 - u, n, grad_input=dn)
    torch.mul(dn, r, out=dq)
    through_sigmoid(torch.mul(dn, q, out=du), r, grad_input=dr)
    through_sigmoid(z[:-1] - n, u, grad_input=du)
    from_r, from_u, from_q = weight.chunk(3)
    state, *earlier = reversed(dz.unbind())
    steps = zip(d.unbind(1), *map(torch.unbind, (dq, dr, du, u)), strict=True)
    for all_four, sq, sr, su, kept in reversed([*steps]):
        all_four.mul_(state)
        state = torch.addcmul(earlier.pop(0), state, kept) if earlier else state * kept
        state.addmm_(sq, from_q).addmm_(sr, from_r).addmm_(su, from_u)
    dh.copy_(state)


def _lstm_steps(kfgo: Tensor, shown: Tensor, z: Tensor, memory: Tensor, transition: Tensor) -> None:
    """From preactivations of features (for g twice) to gates, memories and states."""
    minus = z.new_tensor(-1.0)
    transitions = transition.chunk(4, dim=1)
    (before, *states), (kept, *memories) = z.unbind(), memory.unbind()
    views = kfgo.unbind(1), *map(torch.unbind, kfgo), shown.unbind(), states, memories
    for gates, k, f, g, o, squashed, after, keep in zip(*views, strict=True):
        for gate, matrix in zip((k, f, g, o), transitions, strict=True):
            gate.addmm_(before, matrix)
        gates.sigmoid_()
        torch.add(minus, g, alpha=2, out=g)
        kept = torch.mul(f, kept, out=keep).addcmul_(k, g)
        torch.mul(kept, 2, out=squashed).sigmoid_()
        torch.add(minus, squashed, alpha=2, out=squashed)
        before = torch.mul(o, squashed, out=after)


def _lstm_steps_back(
    d: Tensor,
    dz: Tensor,
    kfgo: Tensor,
    shown: Tensor,
    memory: Tensor,
    weight: Tensor,
    dh: Tensor,
    dc: Tensor,
) -> None:
    """Derivatives of k, f, g and o, and of state and memory before all, from those of states."""
    (k, f, g, o), (dk, df, dg, do) = kfgo, d
    through_sigmoid(g, k, grad_input=dk)
    through_sigmoid(memory[:-1], f, grad_input=df)
    through_tanh(k, g, grad_input=dg)
    through_sigmoid(shown, o, grad_input=do)
    to_memory = torch.ops.aten.tanh_backward(o, shown)
    from_k, from_f, from_g, from_o = weight.chunk(4)
    state, *earlier = reversed(dz.unbind())
    views = d[:3].unbind(1), *map(torch.unbind, (*d, to_memory, f))
    for kfg, sk, sf, sg, so, shows, kept in reversed([*zip(*views, strict=True)]):
        kfg.mul_(dc.addcmul_(state, shows))
        so.mul_(state)
        dc.mul_(kept)
        state = torch.addmm(earlier.pop(0), sk, from_k) if earlier else sk @ from_k
        state.addmm_(sf, from_f).addmm_(sg, from_g).addmm_(so, from_o)
    dh.copy_(state)


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
