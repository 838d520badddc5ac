"""Encode large batches in parts, and compute very large ones again in the backward pass.

A batch of 100,000 instances with 2,000 features takes 800 MB in float32. Standardizing and encoding
it in one piece takes several times as much, and training would keep all of it until the backward
pass. In parts, temporary arrays are small. If the backward pass computes the parts again, only the
encoded instances are kept.
"""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.models.sorted import SortedNetwork
from capnets.nn.encoders import Standardize
from capnets.nn.random import drawn_again

__all__ = ["LARGE", "in_parts"]

#: Numbers of a batch above which it is encoded in parts, and numbers of a part.
LARGE, PART = 2**24, 2**21
#: Numbers of a batch above which the backward pass encodes the parts again. Below this size, which
#: includes the default step, computing twice would cost more than the memory.
AGAIN = 2**25


def in_parts(model: SetModel, x: Tensor) -> SetModel:
    """Return the network or, if a batch is large, a view of it that encodes in parts.

    The view shares all weights. Networks without an encoder read the batch as a whole.
    """
    return _view(model) if x.numel() > LARGE else model


def _view(model: SetModel) -> SetModel:
    view = copy(model)
    view._modules = dict(model._modules)
    if isinstance(model, Ensemble):
        view.members = nn.ModuleList([_view(member) for member in model.each])
    elif isinstance(model, SortedNetwork):
        view.network = _view(model.network)
    elif (
        model.encodes
        and model.in_features is not None
        and isinstance(model.inputs, nn.Identity | Standardize)
    ):
        view.encoder = _Encoder(model.inputs, model.get_submodule("encoder"))
        view.inputs = nn.Identity()
    return view


class _Encoder(nn.Module):
    """Apply `inputs` and an encoder to a part of the instances at a time."""

    def __init__(self, inputs: nn.Module, encoder: nn.Module) -> None:
        super().__init__()
        self.inputs, self.encoder = inputs, encoder

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        encode = self._twice if torch.is_grad_enabled() and x.numel() > AGAIN else self._encoded
        y = torch.cat([encode(part) for part in torch.split(rows, max(1, PART // x.shape[-1]))])
        return y.view(*x.shape[:-1], y.shape[-1])

    def _twice(self, x: Tensor) -> Tensor:
        """Encode now, and again in the backward pass."""
        again = drawn_again()
        y: Tensor = checkpoint(
            self._encoded, x, use_reentrant=False, preserve_rng_state=False,
            context_fn=lambda: again,
        )  # fmt: skip
        return y

    def _encoded(self, x: Tensor) -> Tensor:
        y: Tensor = self.encoder(self.inputs(x))
        return y
