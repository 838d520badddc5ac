r"""Sum: the aggregation of the paper.

.. math:: v_i = d_i, \qquad Y = b + v_1 + … + v_n

:math:`d_i` is the decoder's output for instance :math:`i`, after the activation. Use it if
every instance contributes an amount of its own: counts, sums, costs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from capnets.models.aggregations.base import (
    AddedValues,
    Aggregation,
    Decoded,
    DecodedOnce,
    Level,
    Mask,
    Prediction,
    State,
    base_or_zero,
)
from capnets.nn import masked

__all__ = ["Sum"]


class Sum(Aggregation):
    """Sum the decoded numbers."""

    heads = 1
    memory = 0
    signed = False

    def empty(self, like: Tensor) -> Level:
        return base_or_zero(self.base, like, self.outputs)

    def values(self, decoded: Decoded) -> AddedValues:
        return decoded

    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        total = masked.total(decoded, mask)
        return total if self.base is None else self.base + total

    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        return decoded, state

    @torch.no_grad()
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Start the values at an equal share of the mean, or at 0 around a learned baseline."""
        if self.base is None:
            bias.copy_(level / size)
        else:
            self.base.copy_(level)
            bias.zero_()
