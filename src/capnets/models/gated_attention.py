r"""Gated attention (Ilse et al., ICML 2018, https://arxiv.org/abs/1802.04712).

.. math::
    Z = \sum_i a_i h_i, \quad
    a = \mathrm{softmax}_i\, w^\top (\tanh(V h_i) \odot \sigma(U h_i)), \quad
    h_i = \varepsilon(x_i), \quad Y = \delta(Z)
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.attention import running_mean
from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledModel, Running, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "Gate", "GatedAttention"]


class Gate(nn.Module):
    """Score instances by a hidden layer of tanh units with gates."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.units = nn.Linear(features, features)
        self.gate = nn.Linear(features, features)
        self.output = nn.Linear(features, 1, bias=False)

    def forward(self, h: Tensor) -> Float[Tensor, "*rows 1"]:
        scores: Tensor = self.output(self.units(h).tanh() * self.gate(h).sigmoid())
        return scores


class GatedAttention(PooledModel):
    """Decode a mean of the encoded instances, weighted by a gated score."""

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.scores = Gate(self.hidden)

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        weights = masked.softmax(self.scores(h).squeeze(-1), mask)
        return (weights[..., None] * h).sum(1)

    def pool_prefixes(self, h: Encoded) -> Running:
        return running_mean(h, self.scores(h))


ENTRY = pooled("Gated Attention", "mean weighted by gated scores, decoded", GatedAttention)
