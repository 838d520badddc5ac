r"""A cell that summarises the instances before as a set: no order, no loop.

.. math::
    k_j = \mathrm{softmax}(P e_j + p), \qquad
    c_i = \sum_{j < i} k_j, \qquad
    z_i = [\,e_i,\; \mathrm{ReLU}(G e_i + g)\,c_i / u\,]

:math:`k_j` is a soft assignment of an instance to kinds, which are learned; :math:`c_i` counts how
many of each kind came before. The value of an instance often depends on how many of *its own* kind
there were. The product of gate and counts gives the decoder that number, which linear layers with
ReLU only approximate. The decoder does not see the counts themselves: they reveal the position of
an instance, and a network that knows it could credit an earlier instance's value to a later one
without changing any sum. :math:`u` is the unit of the counts: 1 for sets of up to `USUAL`
instances, in proportion to the size above. Counts that start far above 1 make training steps too
large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from capnets.nn import masked
from capnets.nn.cells import Cell, State, States

if TYPE_CHECKING:
    from capnets.nn.kernels.kernel import CellKernel

__all__ = ["ContextCell"]

#: Mean set size up to which the unit of the counts is 1.
USUAL = 10


class ContextCell(Cell):
    """Concatenate the features of an instance with gated counts of the kinds before it.

    Parameters
    ----------
    in_features
        Features of an instance.
    kinds
        Number of kinds. The more there are, the fewer instances share one by accident.

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
        e = e.transpose(0, 1)  # its order in memory, see `each`
        kinds = self.kind(e).softmax(2)
        if (scale := masked.times()) is not None:  # each represents several
            kinds = kinds * scale
        counts = torch.cat([state[None], kinds]).cumsum(0)
        before = counts[:-1]
        z = torch.cat([e, torch.relu(F.linear(e, *self.gate_per_unit())) * before], dim=2)
        return z.transpose(0, 1), counts[-1]

    def kernel(self) -> CellKernel | None:
        if masked.times() is not None:
            return None
        from capnets.nn.kernels.context import Context

        kind, gate = self.kind, self.gate
        parameters = kind.weight, kind.bias, gate.weight, gate.bias
        return Context(*parameters, unit=self.unit)

    def gate_per_unit(self) -> tuple[Tensor, Tensor]:
        """Return the gate's weight and bias per unit: cheaper than dividing the counts."""
        return self.gate.weight / self.unit, self.gate.bias / self.unit

    def start(self, *, size: float) -> None:
        self.unit.fill_(max(1.0, size / USUAL))

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw kinds and gates that separate instances from the start."""
        for layer in (self.kind, self.gate):
            nn.init.normal_(layer.weight, std=(2 / self.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
