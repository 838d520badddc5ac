r"""Attention blocks of the Set Transformer (Lee et al., ICML 2019, https://arxiv.org/abs/1810.00825).

There is no layer normalisation; this gives the parameter counts of the paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn.functional import scaled_dot_product_attention

from capnets.nn import backend
from capnets.nn.kernels.kernel import to_array

__all__ = ["ISAB", "MAB", "PMA", "SAB"]

Instances = Float[Tensor, "sets size features"]
Keys = Float[Tensor, "sets keys key_features"]
States = Float[Tensor, "sets size hidden"]
Mask = Bool[Tensor, "sets size"] | None

#: Attention of heads with more multiplications per set, or of fewer sets, is left to torch.
LARGE_HEAD, FEW_SETS = 2**10, 16


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
        h = self._attend(self.query(x), self.key(y), self.value(y), mask)
        out: Tensor = h + torch.relu(self.output(h))
        return out

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return queries plus what they attend to."""
        choice = backend.choose((self,), q, lambda forced: _slower(q, k, self.heads, forced))
        if choice.backend == "kernels":
            h: Tensor = _Attention.apply(self.heads, q, k, v, mask)  # type: ignore[no-untyped-call]
            return h
        return _attend(self.heads, q, k, v, mask, fused=choice.backend == "native")


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


def _slower(q: Tensor, k: Tensor, heads: int, forced: bool) -> tuple[()] | str:
    """Return why torch computes attention, or no reason."""
    (sets, size, features), keys = q.shape, k.shape[1]
    if k.dtype != q.dtype or not keys or features % heads:
        return "kernels are for float32 and some keys"
    if not forced and (sets < FEW_SETS or size * keys * features // heads > LARGE_HEAD):
        return "torch is faster for few or large sets"
    return ()


def _attend(
    heads: int, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, fused: bool
) -> Tensor:
    """Attend by torch: its fused function, or operations that support every transform."""
    scale, width = q.shape[2] ** -0.5, q.shape[2] // heads
    q, k, v = (t.reshape(*t.shape[:2], heads, width).transpose(1, 2) for t in (q, k, v))
    seen = None if mask is None else mask[:, None, None, :]
    if fused:
        found = scaled_dot_product_attention(q, k, v, seen, scale=scale)
    else:
        scores = scale * q @ k.transpose(2, 3)
        found = (scores if seen is None else scores.masked_fill(~seen, -torch.inf)).softmax(-1) @ v
    return (q + found).transpose(1, 2).flatten(2)


class _Attention(Function):
    """The kernel of attention as a function of torch."""

    @staticmethod
    def forward(
        ctx: Any, heads: int, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> Tensor:
        from capnets.nn.kernels.attention import Attention

        seen = np.empty((0, 0), np.bool_) if mask is None else mask.contiguous().numpy()
        kernel = Attention(to_array(q), to_array(k), to_array(v), seen, heads)
        ctx.save_for_backward(q, k, v, mask)
        ctx.kernel, ctx.heads = kernel, heads
        return torch.from_numpy(kernel.forward())

    @staticmethod
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask = ctx.saved_tensors  # checks that none was changed
        if not torch.is_grad_enabled():
            return None, *map(torch.from_numpy, ctx.kernel.backward(to_array(dh))), None
        with torch.enable_grad():
            h = _attend(ctx.heads, q, k, v, mask, fused=False)
        inputs = q, k, v
        asked = [t for t in inputs if t.requires_grad]
        found = iter(torch.autograd.grad(h, asked, dh, create_graph=True))
        return None, *(next(found) if t.requires_grad else None for t in inputs), None
