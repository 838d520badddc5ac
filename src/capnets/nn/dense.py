r"""Fully connected layers with ReLU between them, with their derivatives written out.

.. math:: h_0 = x, \qquad h_l = \mathrm{ReLU}(W_l h_{l-1} + b_l), \qquad y = W_L h_{L-1} + b_L

These networks are small and read many instances: on a CPU their time goes into memory as much as
into products. Here ReLU works in place in both directions, which autograd cannot know to be safe.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function

from capnets.nn.derivatives import Gradients, by_hand, once, through_relu

__all__ = ["Dense"]


class Dense(nn.Sequential):
    """`nn.Sequential` of linear layers and ReLU in turn: the same weights, names and results.

    On a CPU it can be differentiated once (see `derivatives`), and hooks on its layers do not run.
    """

    def forward(self, x: Tensor) -> Tensor:
        weights = self._weights() if by_hand(x) else None
        if weights is None:
            y: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return y
        y = _Dense.apply(x.reshape(-1, x.shape[-1]), *weights)  # type: ignore[no-untyped-call]
        return y.view(*x.shape[:-1], y.shape[1])

    def _weights(self) -> list[Tensor] | None:
        """Weights and biases, if it still is linear, ReLU, …, linear: a slice may not be."""
        weights: list[Tensor] = []
        for layer, kind in zip(self, cycle((nn.Linear, nn.ReLU)), strict=False):
            if type(layer) is not kind:
                return None
            if isinstance(layer, nn.Linear):
                bias: Tensor | None = (
                    layer.bias
                )  # torch's annotation forgets that there may be none
                if bias is None:
                    return None
                weights += [layer.weight, bias]
        return weights if len(self) % 2 else None


class _Dense(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        inputs: list[Tensor] = []
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            inputs.append(x.relu_() if inputs else x)
            x = torch.addmm(bias, x, weight.t())
        ctx.save_for_backward(*inputs, *parameters[::2])
        return x

    @staticmethod
    @once
    def backward(ctx: Any, dy: Tensor) -> Gradients:
        layers = len(ctx.saved_tensors) // 2
        inputs, weights = ctx.saved_tensors[:layers], ctx.saved_tensors[layers:]
        gradients: list[Tensor] = []
        for h, weight in zip(reversed(inputs[1:]), reversed(weights[1:]), strict=True):
            gradients += [dy.sum(0), dy.t() @ h]
            dy = through_relu(dy @ weight, h)
        gradients += [dy.sum(0), dy.t() @ inputs[0]]
        dx = dy @ weights[0] if ctx.needs_input_grad[0] else None
        return dx, *reversed(gradients)
