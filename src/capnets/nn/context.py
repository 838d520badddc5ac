r"""A cell that reads what came before as a set: no order, no loop.

.. math::
    c_i = \sum_{j < i} \mathrm{ReLU}(P e_j + p), \qquad
    z_i = [\,e_i,\; c_i,\; \mathrm{ReLU}(G e_i + g)\,c_i\,]

:math:`c_i` is a Deep Set of the predecessors. What an instance adds often depends on how many *of
its kind* came before; the product gives the decoder that number, which sums and ReLU only
approximate.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function

from capnets.nn.cells import Cell, Features, State, States
from capnets.nn.derivatives import Gradients, by_hand, once, through_relu

__all__ = ["ContextCell"]


class ContextCell(Cell):
    """An instance beside the sum of those before it and beside its own part of that sum.

    Parameters
    ----------
    in_features
        Features of an instance.
    hidden
        Width of the sum.

    Examples
    --------
    >>> cell = ContextCell(3, 3)
    >>> e = torch.randn(1, 4, 3)
    >>> z, state = cell(e)
    >>> again, _ = cell(e[:, [1, 2, 0, 3]])  # the last instance sees the same set before it
    >>> torch.allclose(z[:, 3], again[:, 3])
    True
    """

    ordered = False

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.state_features = in_features, hidden
        self.out_features = in_features + 2 * hidden
        self.summand = nn.Linear(in_features, hidden)
        self.gate = nn.Linear(in_features, hidden)

    def forward(self, e: Features, state: State | None = None) -> tuple[States, State]:
        state = self.initial_state(len(e)) if state is None else state
        e, state = e.transpose(0, 1), state[None]
        if by_hand(e):
            weights = self.summand.weight, self.summand.bias, self.gate.weight, self.gate.bias
            z, sums = _Context.apply(e, state, *weights)  # type: ignore[no-untyped-call]
            return z.transpose(0, 1), sums
        sums = torch.cat([state, torch.relu(self.summand(e))]).cumsum(0)
        before = sums[:-1]
        z = torch.cat([e, before, torch.relu(self.gate(e)) * before], dim=2)
        return z.transpose(0, 1), sums[-1]

    def draw_weights(self, generator: torch.Generator) -> None:
        """Sums and products that begin at the size of the features."""
        for layer in (self.summand, self.gate):
            nn.init.normal_(layer.weight, std=(2 / self.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)


class _Context(Function):
    """Everything is steps x sets x features; the state is one step."""

    @staticmethod
    def forward(
        ctx: Any,
        e: Tensor,
        state: Tensor,
        to_sum: Tensor,
        sum_bias: Tensor,
        to_gate: Tensor,
        gate_bias: Tensor,
    ) -> tuple[Tensor, Tensor]:
        flat = e.flatten(0, 1)
        summands = e.new_empty(len(e) + 1, *state.shape[1:])
        summands[:1] = state
        torch.addmm(sum_bias, flat, to_sum.t(), out=summands[1:].flatten(0, 1)).relu_()
        gate = torch.addmm(gate_bias, flat, to_gate.t()).relu_().view_as(summands[1:])
        sums = summands.cumsum(0)
        z = e.new_empty(*e.shape[:2], e.shape[2] + 2 * gate.shape[2])
        own, before, product = _parts(z, e.shape[2])
        own.copy_(e)
        before.copy_(sums[:-1])
        torch.mul(gate, sums[:-1], out=product)
        ctx.save_for_backward(e, to_sum, to_gate, summands, gate, sums)
        return z, sums[-1].clone()

    @staticmethod
    @once
    def backward(ctx: Any, dz: Tensor, dstate: Tensor) -> Gradients:
        e, to_sum, to_gate, summands, gate, sums = ctx.saved_tensors
        own, before, product = _parts(dz, e.shape[2])
        dgate = through_relu(product * sums[:-1], gate).flatten(0, 1)
        # Of the sums, the last first: a summand is in all sums behind it.
        dsums = torch.cat([dstate[None], torch.addcmul(before, product, gate).flip(0)]).cumsum_(0)
        dsummands = through_relu(dsums[:-1].flip(0), summands[1:]).flatten(0, 1)
        flat = e.flatten(0, 1)
        de = None
        if ctx.needs_input_grad[0]:
            de = torch.addmm(own.flatten(0, 1), dsummands, to_sum).addmm_(dgate, to_gate).view_as(e)
        return (
            de,
            dsums[-1:],
            dsummands.t() @ flat,
            dsummands.sum(0),
            dgate.t() @ flat,
            dgate.sum(0),
        )


def _parts(z: Tensor, own: int) -> tuple[Tensor, ...]:
    """The instance itself, the sum before it, their product."""
    hidden = (z.shape[2] - own) // 2
    return torch.split(z, [own, hidden, hidden], dim=2)
