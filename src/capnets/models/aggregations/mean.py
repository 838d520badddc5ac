r"""Weighted mean: every instance estimates the label.

.. math::
    p_i = \frac{c\,b + w_1 u_1 + … + w_i u_i}{c + w_1 + … + w_i}, \qquad
    v_i = p_i - p_{i-1}, \qquad
    Y = p_n = b + v_1 + … + v_n

The decoder gives the belief :math:`u_i` and the logarithm of its weight :math:`w_i`; the baseline
:math:`b` has the learned weight :math:`c`. An instance moves the belief by the share
:math:`w_i / (c + w_1 + … + w_i)` of its disagreement :math:`u_i - p_{i-1}`. Use it if labels do
not grow with the size of a set: ratings, affinities.

Differences of running means lose precision in long sets. Values are therefore computed as that
share of the disagreement; the logarithm of a weight is bounded, so that sums never overflow.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

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

__all__ = ["BOUND", "Mean"]

#: Bound of the logarithm of a weight: one instance outweighs another at most exp(2 * BOUND) times.
BOUND = 10.0


class Mean(Aggregation):
    """Average beliefs with learned weights.

    Attributes
    ----------
    log_prior
        Logarithm of the weight c of the baseline, per output.
    scale
        Amount that a decoder output of 1 stands for, in units. The unit of a network is chosen for
        sums; a mean varies as much as the labels do, sqrt(size) times as much.
    """

    heads = 2
    memory = 2
    scale: Tensor

    def __init__(self, outputs: int, *, learned: bool = False) -> None:
        super().__init__(outputs, learned=learned)
        self.log_prior = nn.Parameter(torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(()))

    def empty(self, like: Tensor) -> Level:
        return base_or_zero(self.base, like, self.outputs)

    def values(self, decoded: Decoded) -> AddedValues:
        u, w = self.beliefs(decoded)
        c, b = self.log_prior.exp(), self.empty(u)
        weights = c + w.cumsum(1)  # of all instances so far
        belief = (c * b + (w * u).cumsum(1)) / weights
        before = torch.cat([b.expand_as(belief[:, :1]), belief[:, :-1]], dim=1)
        return w / weights * (u - before)

    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        u, w = self.beliefs(decoded)
        c, b = self.log_prior.exp(), self.empty(u)
        return (c * b + masked.total(w * u, mask)) / (c + masked.total(w, mask))

    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        u, w = self.beliefs(decoded)
        c, b = self.log_prior.exp(), self.empty(u)
        sums, weights = state.chunk(2, dim=-1)
        before = (c * b + sums) / (c + weights)
        sums, weights = sums + w * u, weights + w
        return w / (c + weights) * (u - before), torch.cat([sums, weights], dim=-1)

    def beliefs(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Split decoded numbers into beliefs (in units) and their weights."""
        u, log_w = decoded.chunk(2, dim=-1)
        return self.scale * u, (BOUND * torch.tanh(log_w / BOUND)).exp()

    @torch.no_grad()
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Start all beliefs at the mean label and all weights at 1."""
        self.scale.fill_(max(1.0, size) ** 0.5)
        u, log_w = bias.chunk(2)
        log_w.zero_()
        if self.base is None:  # the prior pulls towards 0
            level = level * (self.log_prior.exp() + size) / size
        else:
            self.base.copy_(level)
        u.copy_(level / self.scale)
