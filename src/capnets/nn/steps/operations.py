"""The steps of recurrent cells as operations of torch, most of them in place."""

from __future__ import annotations

import torch
from torch import Tensor

from capnets.nn.derivatives import through_sigmoid, through_tanh

__all__ = [
    "gru_backward",
    "gru_forward",
    "lstm_backward",
    "lstm_forward",
    "rnn_backward",
    "rnn_forward",
]


def rnn_forward(a: Tensor, z: Tensor, transition: Tensor) -> None:
    """From twice the preactivations of features to states."""
    minus = z.new_tensor(-1.0)
    before, *states = z.unbind()
    for s, after in zip(a.unbind(), states, strict=True):
        s.addmm_(before, transition).sigmoid_()
        before = torch.add(minus, s, alpha=2, out=after)


def rnn_backward(d: Tensor, dz: Tensor, z: Tensor, weight: Tensor, dh: Tensor) -> None:
    """Derivatives of preactivations, and of the state before all, from those of states."""
    state, *earlier = reversed(dz.unbind())
    for step, after in zip(reversed(d.unbind()), reversed(z.unbind()), strict=False):
        through_tanh(state, after, grad_input=step)
        state = torch.addmm(earlier.pop(0), step, weight) if earlier else step @ weight
    dh.copy_(state)


def gru_forward(run: Tensor, q: Tensor, z: Tensor, transition: Tensor, bias: Tensor) -> None:
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


def gru_backward(
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


def lstm_forward(
    kfgo: Tensor, shown: Tensor, z: Tensor, memory: Tensor, transition: Tensor
) -> None:
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


def lstm_backward(
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
