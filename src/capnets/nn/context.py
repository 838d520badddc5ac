r"""A cell that reads what came before as a set: no order, no loop.

.. math::
    c_i = \sum_{j < i} \mathrm{ReLU}(P e_j + p), \qquad
    z_i = [\,e_i,\; c_i,\; \mathrm{ReLU}(G e_i + g)\,c_i\,]

:math:`c_i` is a Deep Set of the predecessors. What an instance adds often depends on how many *of
its kind* came before; the product gives the decoder that number, which sums and ReLU only
approximate.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.nn.cells import Cell, Features, State, States

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
        e = e.transpose(0, 1)  # so it lies in memory, see `each`
        sums = torch.cat([state[None], torch.relu(self.summand(e))]).cumsum(0)
        before = sums[:-1]
        z = torch.cat([e, before, torch.relu(self.gate(e)) * before], dim=2)
        return z.transpose(0, 1), sums[-1]

    def draw_weights(self, generator: torch.Generator) -> None:
        """Sums and products that begin at the size of the features."""
        for layer in (self.summand, self.gate):
            nn.init.normal_(layer.weight, std=(2 / self.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
