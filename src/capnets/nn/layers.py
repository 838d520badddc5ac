"""Fully connected layers as a part with derivatives written out, compiled."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from capnets.nn import parts
from capnets.nn.kernels import compiled
from capnets.nn.parts import Array, Part, Results, Steps, as_steps, is_watched, memory_of

__all__ = ["Layers", "layers_of"]

#: Weights of a layer up to which compiled loops pay: of larger ones, the few rows that are taken at
#: a time are too many for one thread of BLAS (see `capnets.nn.kernels.products`).
MOST = 2**15

#: Rows for which there is room between layers when nothing is differentiated: more than at once.
ROOM = 128


class Layers(Part):
    """Linear layers with ReLU between them. Parameters: weights and biases in turns."""

    def width(self, features: int) -> int | None:
        for weight, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            if weight.shape != (*bias.shape, features):
                return None
            features = bias.shape[0]
        return features

    def forward(self, x: Steps, *, back: bool) -> Results:
        loops: Any = compiled("layers")
        rows = memory_of(x.flatten(0, 1))
        arrays = [memory_of(p) for p in self.parameters]
        weights, biases = (*arrays[::2],), (*arrays[1::2],)
        room = len(rows) if back else min(len(rows), ROOM)
        between = [parts.empty(room, len(b)) for b in biases[:-1]]
        y = parts.empty(len(rows), len(biases[-1]))
        loops.forward(rows, weights, biases, (*between, y))
        self.kept = rows, weights, (*between, rows)
        return as_steps(y, x)

    def backward(self, dy: Results, *, wanted: bool) -> tuple[Steps | None, list[Tensor]]:
        loops: Any = compiled("layers")
        rows, weights, between = self.kept
        dweights: tuple[Array, ...] = (*(parts.empty(*w.shape) for w in weights),)
        dbiases = (*(parts.empty(len(w)) for w in weights),)
        dx = parts.empty(len(rows) if wanted else 0, rows.shape[1])
        loops.backward(memory_of(dy.flatten(0, 1)), rows, weights, between, dweights, dbiases, dx)
        found = map(torch.from_numpy, chain(*zip(dweights, dbiases, strict=True)))
        return as_steps(dx, dy) if wanted else None, [*found]


def layers_of(network: nn.Module) -> Layers | None:
    """The layers of a network, if it consists of such and they are small."""
    if type(network) is not nn.Sequential or len(network) % 2 == 0:
        return None
    parameters: list[Tensor] = []
    for place, layer in enumerate(network):
        if type(layer) is not (nn.ReLU if place % 2 else nn.Linear) or is_watched(layer):
            return None
        for parameter in layer._parameters.values():  # quicker than asking for each by its name
            if parameter is None or parameter.numel() > MOST:
                return None
            parameters.append(parameter)
    return Layers(*parameters)
