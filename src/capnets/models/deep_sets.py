r"""Deep Sets (Zaheer et al., NeurIPS 2017, https://arxiv.org/abs/1703.06114).

.. math:: Z = \sum_{x \in X} \varepsilon(x), \qquad Y = \delta(Z)
"""

from __future__ import annotations

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledModel, Running, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "DeepSet"]


class DeepSet(PooledModel):
    """Sum the encoded instances, decode the sum; the order cannot matter."""

    sums = True

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        return masked.total(h, mask)

    def pool_prefixes(self, h: Encoded) -> Running:
        return h.cumsum(1)  # sums of prefixes are running sums: one pass gives all of them


ENTRY = pooled("DeepSet", "sum of encoded instances, decoded", DeepSet)
