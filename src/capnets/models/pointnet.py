r"""PointNet's pooling by maximum (Qi et al., CVPR 2017, https://arxiv.org/abs/1612.00593).

.. math:: Z_d = \max_i \varepsilon(x_i)_d, \qquad Y = \delta(Z)
"""

from __future__ import annotations

import torch

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledModel, Running, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "PointNet"]


class PointNet(PooledModel):
    """Decode the largest value of every encoded feature."""

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        return masked.fill(h, mask, -torch.inf).amax(1)

    def pool_prefixes(self, h: Encoded) -> Running:
        return h.cummax(1).values


ENTRY = pooled("PointNet", "maximum of encoded instances, decoded", PointNet)
