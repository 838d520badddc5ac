r"""FSPool: featurewise sort pooling (Zhang et al., ICLR 2020, https://arxiv.org/abs/1906.02795).

.. math::
    Z_d = \sum_{i=1}^n w_d\!\left(\tfrac{i-1}{n-1}\right) h_{(i)d}, \qquad
    h_{(1)d} \ge … \ge h_{(n)d}, \qquad Y = \delta(Z)

Each feature of :math:`h_i = \varepsilon(x_i)` is sorted on its own. The weight :math:`w_d` is
piecewise linear in the relative rank, so that sets of any size share its knots.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "FSPool"]

#: Number of linear pieces of a weight function.
PIECES = 20


class FSPool(PooledOnceModel):
    """Sort every encoded feature and sum it with weights that depend on the rank."""

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.knots = nn.Parameter(torch.randn(PIECES + 1, self.hidden))

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        ranks = torch.arange(h.shape[1], device=h.device)
        last = (masked.sizes(h, mask) - 1).clamp_min(1)
        at = PIECES * (ranks / last).clamp_max(1)  # sets x size
        left = at.long().clamp_max(PIECES - 1)
        share = (at - left)[..., None]
        weights = (1 - share) * self.knots[left] + share * self.knots[left + 1]
        descending = masked.fill(h, mask, -torch.inf).sort(1, descending=True).values
        return (weights * masked.blank(descending, mask)).sum(1)


ENTRY = pooled("FSPool", "sorted features, weighted by rank, decoded", FSPool)
