r"""A cell without context: instances do not know what came before.

.. math:: z_i = e_i
"""

from __future__ import annotations

from torch import Tensor

from capnets.nn.cells import Cell, State, States

__all__ = ["IndependentCell"]


class IndependentCell(Cell):
    """Pass the features of every instance on; there is no state.

    Parameters
    ----------
    features
        Number of features.
    """

    ordered = False
    context = False
    gates = 0

    def __init__(self, features: int) -> None:
        super().__init__()
        self.in_features = self.out_features = features
        self.state_features = 0

    def forward(self, e: Tensor, state: Tensor | None = None) -> tuple[States, State]:
        return e, self.state_before(e, state)
