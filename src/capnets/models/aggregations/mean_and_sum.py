r"""Weighted mean and sum together.

.. math:: v_i = (p_i - p_{i-1}) + d_i, \qquad Y = p_n + d_1 + … + d_n

with the running mean :math:`p_i` of `Mean` and one more number :math:`d_i` per instance. The sum
starts at 0 with zero weights, so that training begins as a mean and adds a dependence on the size
only where labels have one.
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
)
from capnets.models.aggregations.mean import Mean
from capnets.nn import masked

__all__ = ["MeanAndSum"]


class MeanAndSum(Aggregation):
    """Add a sum to a weighted mean; `mean` holds the baseline of both."""

    heads = 3
    memory = 2

    def __init__(self, outputs: int, *, learned: bool = False) -> None:
        super().__init__(outputs)
        self.mean = Mean(outputs, learned=learned)

    def empty(self, like: Tensor) -> Level:
        return self.mean.empty(like)

    def values(self, decoded: Decoded) -> AddedValues:
        beliefs, d = self.split(decoded)
        return self.mean.values(beliefs) + d

    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        beliefs, d = self.split(decoded)
        return self.mean.predict(beliefs, mask) + masked.total(d, mask)

    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        beliefs, d = self.split(decoded)
        value, state = self.mean.next_value(beliefs, state)
        return value + d, state

    def split(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Split decoded numbers into those of the mean and the summands."""
        beliefs, d = torch.split(decoded, [2 * self.outputs, self.outputs], dim=-1)
        return beliefs, d

    @torch.no_grad()
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Start the mean at the mean label and the sum at 0."""
        cut = 2 * self.outputs
        self.mean.start(weight[:cut], bias[:cut], level=level, size=size)
        weight[cut:] = 0.0
        bias[cut:] = 0.0
