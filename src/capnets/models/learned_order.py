r"""C-GRU behind a learned order (Gumbel-Sinkhorn; Mena et al., ICLR 2018, arXiv:1802.08665).

.. math::
    P = \mathrm{Sinkhorn}\bigl((\gamma_{ij} - (\hat s_i - j)^2) / \tau\bigr), \qquad
    \tilde x_j = \sum_i P_{ij} x_i, \qquad Y = f(\tilde x_1, …, \tilde x_n)

The paper names a learned order as future work. Every instance has a score :math:`s(x_i)`, learned
with the network :math:`f`; :math:`\hat s_i` has the mean and deviation of the positions :math:`j`.
Sinkhorn's algorithm scales rows and columns in turn to sum 1. As :math:`\tau \to 0`, :math:`P`
becomes the permutation that sorts by the score. The noise :math:`\gamma` is Gumbel's in training
and 0 otherwise. The prediction depends on the set alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.base import Instances, Mask
from capnets.models.capacity import CapacityNetwork
from capnets.models.entry import Entry, decoder, encoder
from capnets.models.sorted import ReorderedNetwork
from capnets.nn import encoders, masked
from capnets.nn.cells import GRUCell
from capnets.nn.random import generator

__all__ = ["ENTRY", "LearnedOrder"]

TEMPERATURE = 0.2
ITERATIONS = 10
#: Scale of the Gumbel noise in training.
NOISE = 0.1
TINY = 1e-6


class LearnedOrder(ReorderedNetwork):
    """Mix instances by a soft permutation and pass them to a network."""

    idle = ("scores.2.bias",)  # scores are centred

    def __init__(self, network: CapacityNetwork, *, scores: nn.Sequential) -> None:
        super().__init__(network)
        self.scores = scores

    def arrange(self, x: Instances, mask: Mask) -> Instances:
        x = masked.blank(x, mask)
        return self.permutation(x, mask).transpose(1, 2) @ x

    def permutation(self, x: Instances, mask: Mask) -> Float[Tensor, "sets size size"]:
        """Return the share of instance i at position j. Padding stays where it is."""
        size, n = x.shape[1], masked.sizes(x, mask)
        scores = self.scores(x).squeeze(-1)
        scores = masked.blank(scores - masked.blank(scores, mask).sum(1, keepdim=True) / n, mask)
        variance = scores.square().sum(1, keepdim=True) / n
        spread = ((n.square() - 1) / 12).sqrt() * (variance + TINY).rsqrt()
        positions = torch.arange(size, device=x.device) - (n - 1) / 2
        log = -((scores * spread)[:, :, None] - positions[:, None]).square()
        if self.training:
            uniform = torch.rand(log.shape, generator=generator(x.device), device=x.device)
            log = log - NOISE * (-uniform.clamp(TINY, 1 - TINY).log()).log()
        log = _with_padding(log / TEMPERATURE, mask)
        for _ in range(ITERATIONS):
            log = log - log.logsumexp(2, keepdim=True)
            log = log - log.logsumexp(1, keepdim=True)
        return log.exp()


def _with_padding(log: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return log
    own = torch.eye(log.shape[1], dtype=torch.bool, device=log.device) & ~mask[:, :, None]
    log = log.masked_fill(~(mask[:, :, None] & mask[:, None]), -torch.inf)
    return log.masked_fill(own, 0.0)


ENTRY = Entry(
    "C-GRU, learned order",
    "capacity network on a GRU that reads a learned order",
    lambda spec: LearnedOrder(
        CapacityNetwork(
            encoder=encoder(spec),
            cell=GRUCell(spec.hidden, spec.hidden),
            decoder=decoder(spec),
            activation=spec.activation,
        ),
        scores=encoders.mlp(spec.in_features, spec.hidden, 1),
    ),
)
