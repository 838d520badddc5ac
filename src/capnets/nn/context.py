r"""A cell that reads what came before as a set: no order, no loop.

.. math::
    k_j = \mathrm{softmax}(P e_j + p), \qquad
    c_i = \sum_{j < i} k_j, \qquad
    z_i = [\,e_i,\; \mathrm{ReLU}(G e_i + g)\,c_i / u\,]

:math:`k_j` says of which kind an instance is, :math:`c_i` how many of each kind came before. What
an instance adds often depends on how many of *its own* kind there were; the product gives the
decoder that number, which sums and ReLU only approximate. Of the other counts the decoder sees what
the instance asks for. It does not see the counts themselves: they tell how many instances came
before, and a network that knows this may say later what an instance added, with the same sums.
Kinds are found in training. :math:`u` is the unit of the counts, 1 for sets of up to `USUAL`
instances and in proportion to them for larger ones: counts that begin far above 1 make every step
of training too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from capnets.nn.cells import Cell, State, States

if TYPE_CHECKING:
    from capnets.nn.kernels.kernel import CellKernel

__all__ = ["ContextCell"]

#: Up to so many instances per set, counts are counted one by one.
USUAL = 10


class ContextCell(Cell):
    """An instance beside its own part of the counts of kinds before it.

    Parameters
    ----------
    in_features
        Features of an instance.
    kinds
        How many kinds there are. With many, few are mixed up.

    Attributes
    ----------
    unit
        The count that the decoder sees as 1. A buffer: saved with the weights, never trained.

    Examples
    --------
    >>> cell = ContextCell(3, 3)
    >>> e = torch.randn(1, 4, 3)
    >>> z, state = cell(e)
    >>> again, _ = cell(e[:, [1, 2, 0, 3]])  # the last instance sees the same set before it
    >>> torch.allclose(z[:, 3], again[:, 3])
    True
    >>> round(state.sum().item())
    4
    """

    ordered = False
    unit: Tensor

    def __init__(self, in_features: int, kinds: int) -> None:
        super().__init__()
        self.in_features, self.state_features = in_features, kinds
        self.out_features = in_features + kinds
        self.kind = nn.Linear(in_features, kinds)
        self.gate = nn.Linear(in_features, kinds)
        self.register_buffer("unit", torch.ones(()))

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        state = self.state_before(e, state)
        e = e.transpose(0, 1)  # so it lies in memory, see `each`
        counts = torch.cat([state[None], self.kind(e).softmax(2)]).cumsum(0)
        before = counts[:-1]
        z = torch.cat([e, torch.relu(F.linear(e, *self.gate_per_unit())) * before], dim=2)
        return z.transpose(0, 1), counts[-1]

    def kernel(self) -> CellKernel:
        from capnets.nn.kernels.context import Context

        kind, gate = self.kind, self.gate
        parameters = kind.weight, kind.bias, gate.weight, gate.bias
        return Context(*parameters, unit=self.unit)

    def gate_per_unit(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the gate for counts as they are: cheaper than to divide the counts."""
        return self.gate.weight / self.unit, self.gate.bias / self.unit

    def start(self, *, size: float) -> None:
        self.unit.fill_(max(1.0, size / USUAL))

    def draw_weights(self, generator: torch.Generator) -> None:
        """Kinds and gates that tell instances apart from the beginning."""
        for layer in (self.kind, self.gate):
            nn.init.normal_(layer.weight, std=(2 / self.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
