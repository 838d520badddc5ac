r"""Last: the decoder reads the prediction from the state after every instance.

.. math:: p_i = b + d_i, \qquad v_i = p_i - p_{i-1}, \qquad Y = p_n = b + v_1 + … + v_n

with :math:`p_0 = b`. A value is a change of the prediction, as in a recurrent network, and may
depend on the whole state. In return, nothing ties a value to its own instance: a late instance may
be credited for an early one. Use it where predictions matter most.
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

__all__ = ["Last"]


class Last(Aggregation):
    """Read the prediction from the last state.

    Attributes
    ----------
    scale
        Amount that a decoder output of 1 stands for, in units, as in `Mean`.
    """

    heads = 1
    memory = 1
    scale: Tensor

    def __init__(self, outputs: int, *, learned: bool = False) -> None:
        super().__init__(outputs, learned=learned)
        self.register_buffer("scale", torch.ones(()))

    def empty(self, like: Tensor) -> Level:
        return base_or_zero(self.base, like, self.outputs)

    def values(self, decoded: Decoded) -> AddedValues:
        d = self.scale * decoded
        return d.diff(dim=1, prepend=torch.zeros_like(d[:, :1]))

    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        d = self.scale * masked.last(decoded, mask)
        if mask is not None:  # an empty set has no last state
            d = torch.where(mask[:, :1], d, 0.0)
        return self.empty(d) + d

    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        d = self.scale * decoded
        return d - state, d

    @torch.no_grad()
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Start at the mean label, whatever the size of a set."""
        self.scale.fill_(max(1.0, size) ** 0.5)
        if self.base is None:
            bias.copy_(level / self.scale)
        else:
            self.base.copy_(level)
            bias.zero_()
