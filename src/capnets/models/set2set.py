r"""Set2Set: read, process, write (Vinyals et al., ICLR 2016, https://arxiv.org/abs/1511.06391).

.. math::
    q_t = \mathsf{LSTM}([q_{t-1}, r_{t-1}]), \quad
    r_t = \sum_i \mathrm{softmax}_i(h_i^\top q_t)\, h_i, \quad
    Y = \delta([q_T, r_T]), \quad h_i = \varepsilon(x_i)

The first input is 0, and :math:`T = 3`.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked
from capnets.nn.cells import LSTMCell

__all__ = ["ENTRY", "Set2Set"]

#: Number of times that the set is read.
STEPS = 3


class Set2Set(PooledOnceModel):
    """Query the set several times; each query depends on the answers before."""

    width = 2

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.cell = LSTMCell(2 * self.hidden, self.hidden)

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        state, answer = self.cell.initial_state(len(h)), h.new_zeros(len(h), 2 * self.hidden)
        for _ in range(STEPS):
            query, state = self.cell(answer[:, None], state)
            weights = masked.softmax((h * query).sum(2), mask)
            answer = torch.cat([query[:, 0], (weights[..., None] * h).sum(1)], dim=1)
        return answer


ENTRY = pooled("Set2Set", "an LSTM queries the set several times", Set2Set)
