r"""Attention blocks of the Set Transformer (Lee et al., ICML 2019, https://arxiv.org/abs/1810.00825).

There is no layer normalisation; this gives the parameter counts of the paper.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ISAB", "MAB", "PMA", "SAB"]

Instances = Float[Tensor, "sets size features"]
Keys = Float[Tensor, "sets keys key_features"]
States = Float[Tensor, "sets size hidden"]
Mask = Bool[Tensor, "sets size"] | None


class MAB(nn.Module):
    r"""Multihead attention block: queries :math:`X` attend to keys :math:`Y`.

    .. math::
        H = Q + \mathrm{softmax}(Q K^\top / \sqrt{d})\,V, \qquad
        \mathrm{MAB}(X, Y) = H + \mathrm{ReLU}(O H)

    where :math:`Q, K, V` are linear in :math:`X, Y, Y` and split into heads; :math:`d` is the
    width of all heads together.
    """

    def __init__(
        self, query_features: int, key_features: int, hidden: int, *, heads: int = 4
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(query_features, hidden)
        self.key = nn.Linear(key_features, hidden)
        self.value = nn.Linear(key_features, hidden)
        self.output = nn.Linear(hidden, hidden)

    def forward(
        self, x: Instances, y: Keys, mask: Bool[Tensor, "sets keys"] | None = None
    ) -> States:
        q, k, v = (self._heads(t) for t in (self.query(x), self.key(y), self.value(y)))
        seen = None if mask is None else mask[:, None, None, :]
        scale = self.output.in_features**-0.5
        found = F.scaled_dot_product_attention(q, k, v, seen, scale=scale)
        h = (q + found).transpose(1, 2).flatten(2)
        out: Tensor = h + torch.relu(self.output(h))
        return out

    def _heads(self, t: States) -> Float[Tensor, "sets heads size width"]:
        sets, size, hidden = t.shape
        return t.view(sets, size, self.heads, hidden // self.heads).transpose(1, 2)


class SAB(nn.Module):
    r"""Self-attention block: :math:`\mathrm{MAB}(X, X)`."""

    def __init__(self, in_features: int, hidden: int, *, heads: int = 4) -> None:
        super().__init__()
        self.attend = MAB(in_features, in_features, hidden, heads=heads)

    def forward(self, x: Instances, mask: Mask = None) -> States:
        out: Tensor = self.attend(x, x, mask)
        return out


class ISAB(nn.Module):
    r"""Self-attention through inducing points: :math:`\mathrm{MAB}(X, \mathrm{MAB}(I, X))`.

    Every instance attends to the points :math:`I` instead of all others: the cost is linear in the
    size of a set.
    """

    def __init__(self, in_features: int, hidden: int, *, points: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.points = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, points, hidden)))
        self.gather = MAB(hidden, in_features, hidden, heads=heads)
        self.spread = MAB(in_features, hidden, hidden, heads=heads)

    def forward(self, x: Instances, mask: Mask = None) -> States:
        summary = self.gather(self.points.expand(len(x), -1, -1), x, mask)
        out: Tensor = self.spread(x, summary)
        return out


class PMA(nn.Module):
    r"""Pooling by attention with learned seeds :math:`S`: :math:`\mathrm{MAB}(S, X)`."""

    def __init__(self, hidden: int, *, seeds: int = 1, heads: int = 4) -> None:
        super().__init__()
        self.seeds = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, seeds, hidden)))
        self.attend = MAB(hidden, hidden, hidden, heads=heads)

    def forward(self, x: Instances, mask: Mask = None) -> Float[Tensor, "sets seeds hidden"]:
        out: Tensor = self.attend(self.seeds.expand(len(x), -1, -1), x, mask)
        return out
