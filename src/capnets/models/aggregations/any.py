r"""Noisy-or: one positive instance suffices.

.. math::
    p_i = \sigma(d_i), \qquad
    v_i = p_i\,(1 - b) \prod_{j < i} (1 - p_j), \qquad
    Y = 1 - (1 - b) \prod_i (1 - p_i) = b + v_1 + … + v_n

:math:`p_i` is the probability that instance :math:`i` alone makes the set positive, and the
baseline :math:`b` the probability that a set is positive without any. Labels lie in [0, 1].

Products of many factors vanish. With the softplus :math:`s_i = \log(1 + \exp d_i)`, the product of
all :math:`1 - p_j` is :math:`\exp(-\sum_j s_j)`, and one minus it is computed by `expm1`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

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
from capnets.nn import masked

__all__ = ["Any"]

#: Minimum distance of the initial prediction from 0 and 1.
MARGIN = 1e-3


class Any(Aggregation):
    """Combine probabilities by noisy-or."""

    heads = 1
    memory = 1
    probability = True

    def leak(self, like: Tensor) -> Level:
        """Return -log(1 - b)."""
        return like.new_zeros(self.outputs) if self.base is None else softplus(self.base)

    def empty(self, like: Tensor) -> Level:
        return -torch.expm1(-self.leak(like))

    def values(self, decoded: Decoded) -> AddedValues:
        s = softplus(decoded)
        leak = self.leak(s).expand_as(s[:, :1])
        before = torch.cat([leak, s[:, :-1]], dim=1).cumsum(1)
        return torch.sigmoid(decoded) * torch.exp(-before)

    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        return -torch.expm1(-self.leak(decoded) - masked.total(softplus(decoded), mask))

    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        value = torch.sigmoid(decoded) * torch.exp(-self.leak(decoded) - state)
        return value, state + softplus(decoded)

    @torch.no_grad()
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Start at the mean label; a learned baseline takes half of log(1 - label)."""
        total = -torch.log1p(-level.clamp(MARGIN, 1 - MARGIN))
        if self.base is not None:
            total = total / 2
            self.base.copy_(inverse_softplus(total))
        bias.copy_(inverse_softplus(total / size))


def inverse_softplus(s: Tensor) -> Tensor:
    """Return d with log(1 + exp d) = s, in a form that does not overflow for large s."""
    return s + (-torch.expm1(-s)).log()
