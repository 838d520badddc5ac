r"""A memory network for sets, after Kalra et al. (ECCV 2020, https://arxiv.org/abs/1911.07984).

.. math::
    p_{ij} = \mathrm{softmax}_j\bigl((Q_b h_i)^\top M_b h_j / \sqrt d\bigr), \qquad
    h_i \leftarrow \mathrm{relu}\Bigl(h_i + \sum_j p_{ij}\, C_b h_j\Bigr), \qquad
    Y = \delta\Bigl(\tfrac1n \sum_i h_i\Bigr)

Every instance of :math:`h_i = \varepsilon(x_i)` is written to the input memory :math:`M_b h_j` and
the output memory :math:`C_b h_j` of a block, and queries them. There are two blocks. The published
model stacks further dense layers around its memory units; its principle is kept, not its sizes.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "MemoryNetwork"]

BLOCKS = 2


class MemoryNetwork(PooledOnceModel):
    """Let every instance query a memory of all instances, then decode the mean."""

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        d = self.hidden
        # A bias of the input memory would add the same to all scores of an instance.
        self.queries = nn.ModuleList(nn.Linear(d, d) for _ in range(BLOCKS))
        self.keys = nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(BLOCKS))
        self.contents = nn.ModuleList(nn.Linear(d, d) for _ in range(BLOCKS))

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        h = masked.blank(h, mask)
        seen = None if mask is None else mask[:, None]
        for query, key, content in zip(self.queries, self.keys, self.contents, strict=True):
            scores = query(h) @ key(h).transpose(1, 2) / self.hidden**0.5
            h = torch.relu(h + masked.softmax(scores, seen) @ content(h))
        return masked.mean(h, mask)


ENTRY = pooled("Memory", "instances query a memory of the set; mean, decoded", MemoryNetwork)
