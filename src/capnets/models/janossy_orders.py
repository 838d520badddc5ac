r"""Janossy pooling by sampled orders (Murphy et al., ICLR 2019, https://arxiv.org/abs/1811.01900).

.. math::
    Z = \frac{1}{m} \sum_{k=1}^m \mathsf{GRU}(h_{\pi_k(1)}, …, h_{\pi_k(n)}), \qquad
    h_i = \varepsilon(x_i), \qquad Y = \delta(Z)

Training draws one order per set and step (the paper's :math:`\pi`-SGD). Otherwise :math:`m = 8`
fixed orders are averaged, so that predictions are repeatable. They depend on the given order, but
less than those of one GRU.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked
from capnets.nn.cells import GRUCell
from capnets.nn.random import generator
from capnets.sets.hashing import splitmix64

__all__ = ["ENTRY", "JanossyOrders"]

#: Orders that a prediction averages.
ORDERS = 8


class JanossyOrders(PooledOnceModel):
    """Decode the mean of a GRU's last states in several orders."""

    ordered = True

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.cell = GRUCell(self.hidden, self.hidden)

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        sets, size, _ = h.shape
        if self.training:
            keys = torch.rand(1, sets, size, generator=generator(h.device), device=h.device)
        else:
            keys = _fixed(size).to(h.device)[:, None].expand(-1, sets, -1)
        if mask is not None:
            keys = keys.masked_fill(~mask, torch.inf)  # padding stays at the end
        rows = torch.arange(sets, device=h.device)[:, None]
        read = h[rows, keys.argsort(dim=2, stable=True)].flatten(0, 1)
        states, _ = self.cell(read)
        ends = masked.last(states, None if mask is None else mask.repeat(len(keys), 1))
        return ends.view(len(keys), sets, self.hidden).mean(0)


def _fixed(size: int) -> Tensor:
    """Return one key per order and position. Sets of every size share their first keys."""
    counter = (np.arange(1, ORDERS + 1)[:, None] << 32) + np.arange(size)
    keys = splitmix64(splitmix64(counter.astype(np.uint64)))
    return torch.from_numpy((keys >> np.uint64(11)).astype(np.float64))


ENTRY = pooled("Janossy, orders", "mean of a GRU over sampled orders, decoded", JanossyOrders)
