r"""A discrete Choquet integral between encoder and decoder: the reference for aggregations.

.. math::
    Z_d = \sum_{i=1}^n h_{(i)d}\,\bigl(\mu_d(A_i) - \mu_d(A_{i-1})\bigr), \qquad
    h_{(1)d} \ge … \ge h_{(n)d}, \qquad A_i = \{(1), …, (i)\}

(Choquet, 1954; Grabisch, 1996, https://doi.org/10.1016/0377-2217(95)00176-X.) A table of all
:math:`2^n` subsets would fix the instances, so the capacity is a distorted measure

.. math:: \mu_d(A) = g_d\Bigl(\sum_{i \in A} w_i\Bigr), \qquad w = \mathrm{softmax}_i\, s(h_i)

with :math:`g_d` nondecreasing, :math:`g_d(0) = 0` and :math:`g_d(1) = 1`: piecewise linear, with a
jump at either end. All weight on the first jump gives the maximum, on the last the minimum, equal
slopes the weighted mean, and equal weights :math:`w_i` an ordered weighted average.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "ChoquetNetwork"]

#: Number of linear pieces of a distortion.
PIECES = 8


class ChoquetNetwork(PooledOnceModel):
    """Integrate every encoded feature with respect to a learned capacity, then decode."""

    idle = ("scores.bias",)  # a softmax ignores a constant that is added to all scores

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.scores = nn.Linear(self.hidden, 1)
        self.rises = nn.Parameter(torch.randn(PIECES + 2, self.hidden))

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        descending, order = masked.fill(h, mask, -torch.inf).sort(1, descending=True)
        weights = masked.softmax(self.scores(h).squeeze(-1), mask)
        measure = weights[..., None].expand_as(h).gather(1, order).cumsum(1)
        # Padding has no measure: the last instance reaches exactly 1.
        capacity = self.distorted(measure / measure[:, -1:])
        steps = capacity.diff(dim=1, prepend=torch.zeros_like(capacity[:, :1]))
        return (masked.blank(descending, mask) * steps).sum(1)

    def distorted(self, measure: Encoded) -> Encoded:
        """Apply the distortions g to measures in [0, 1]."""
        first, *slopes, last = self.rises.softmax(0).unbind()
        capacity: Encoded = first * (measure > 0) + last * (measure >= 1)
        for k, slope in enumerate(slopes):
            capacity = capacity + slope * (PIECES * measure - k).clamp(0, 1)
        return capacity


ENTRY = pooled("Choquet", "Choquet integral of encoded features, decoded", ChoquetNetwork)
