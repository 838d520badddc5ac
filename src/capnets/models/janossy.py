r"""Janossy pooling of pairs (Murphy et al., ICLR 2019, https://arxiv.org/abs/1811.01900), k = 2.

.. math::
    Z = \frac{1}{n (n-1)} \sum_{i \ne j} \mathrm{relu}(A h_i + B h_j + b), \qquad
    h_i = \varepsilon(x_i), \qquad Y = \delta(Z)

The only pair of a set of one instance is :math:`(h_1, 0)`. Time and memory grow with :math:`n^2`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledModel, Running, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "JanossyPairs"]


class JanossyPairs(PooledModel):
    """Decode the mean of a function of all ordered pairs."""

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.first = nn.Linear(self.hidden, self.hidden)
        self.second = nn.Linear(self.hidden, self.hidden, bias=False)

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        pairs = self.pairs(h)
        if mask is not None:
            pairs = masked.blank(pairs, mask).masked_fill(~mask[:, None, :, None], 0.0)
        return self._mean(pairs.sum((1, 2)), h[:, 0], masked.sizes(h, mask))

    def pool_prefixes(self, h: Encoded) -> Running:
        # The pairs of the first k instances are the leading k x k block.
        sums = self.pairs(h).cumsum(1).cumsum(2).diagonal(dim1=1, dim2=2).transpose(1, 2)
        sizes = torch.arange(1, h.shape[1] + 1, device=h.device, dtype=h.dtype)
        return self._mean(sums, h[:, :1], sizes[:, None])

    def pairs(self, h: Encoded) -> Float[Tensor, "sets size size hidden"]:
        """Return the function of all pairs; 0 where both are the same instance."""
        pairs = torch.relu(self.first(h)[:, :, None] + self.second(h)[:, None])
        same = torch.eye(h.shape[1], dtype=torch.bool, device=h.device)
        return pairs.masked_fill(same[..., None], 0.0)

    def _mean(self, sums: Tensor, first: Tensor, sizes: Tensor) -> Tensor:
        alone = torch.relu(self.first(first))
        return torch.where(sizes > 1, sums / (sizes * (sizes - 1)).clamp_min(1), alone)


ENTRY = pooled("Janossy, pairs", "mean over ordered pairs, decoded", JanossyPairs)
