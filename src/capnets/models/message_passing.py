r"""Deep Message Passing on Sets (Shi et al., AAAI 2020, https://arxiv.org/abs/1909.09877).

.. math::
    A_{ij} \propto \exp(-\lVert K h_i - K h_j \rVert^2), \qquad
    h_i \leftarrow \frac{h_i + \lambda_b\, \mathrm{relu}(W_b \sum_j A_{ij} h_j)}{1 + \lambda_b},
    \qquad Y = \delta\Bigl(\sum_i h_i\Bigr)

Rows of the latent graph :math:`A` sum to 1. It is computed once from :math:`h_i = \varepsilon(x_i)`
by a learned kernel. The update is the paper's set-denoising block with a learned diffusion
:math:`\lambda_b > 0`; there are two blocks.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import Mask
from capnets.models.pooled import Encoded, Pooled, PooledOnceModel, pooled
from capnets.nn import masked

__all__ = ["ENTRY", "MessagePassing"]

BLOCKS = 2


class MessagePassing(PooledOnceModel):
    """Exchange messages on a learned graph, then decode the sum."""

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(encoder=encoder, decoder=decoder)
        self.kernel = nn.Linear(self.hidden, self.hidden, bias=False)
        self.blocks = nn.ModuleList(nn.Linear(self.hidden, self.hidden) for _ in range(BLOCKS))
        self.diffusion = nn.Parameter(torch.zeros(BLOCKS))  # lambda = exp(diffusion)

    def pool(self, h: Encoded, mask: Mask) -> Pooled:
        h = masked.blank(h, mask)
        k = self.kernel(h)
        # The softmax over j cancels the square of k_i.
        scores = 2 * k @ k.transpose(1, 2) - k.square().sum(2)[:, None]
        graph = masked.softmax(scores, None if mask is None else mask[:, None])
        for block, share in zip(self.blocks, self.diffusion.sigmoid(), strict=True):
            # lambda / (1 + lambda) = sigmoid(log lambda)
            h = torch.lerp(h, torch.relu(block(graph @ h)), share)
        return masked.total(h, mask)


ENTRY = pooled("Message Passing", "messages on a learned graph, summed, decoded", MessagePassing)
