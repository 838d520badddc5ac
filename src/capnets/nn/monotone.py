r"""Layers that make nothing smaller: functions which grow wherever their input grows.

.. math:: u = W h, \qquad h' = [\,\min(u, \kappa),\; \max(u - \kappa, 0)\,], \qquad W \ge 0

With ReLU alone such layers only give convex functions. A unit that hands on what it has up to its
bend :math:`\kappa` beside what it has beyond bends either way, by how much the next layer uses of
both, and always learns: one of the two is moving.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["Bend", "MonotoneLinear", "monotone_mlp"]

Positive = Callable[[Tensor], Tensor]

#: Weights begin as this power of normal numbers: each unit listens to a few of its inputs. Positive
#: weights of similar size would let all units begin, and stay, as the mean of all inputs.
POWER = 8
#: Bends begin between 0 and this: behind an encoder with wide start weights, and with torch's.
WIDE, NARROW = 8.0, 0.5
#: What all units together make of inputs that grow by 1.
SLOPE = 5.0


class Bend(nn.Module):
    """What units have up to their bends, beside what they have beyond.

    Examples
    --------
    >>> bend = Bend(1)
    >>> _ = nn.init.constant_(bend.at, 2.0)
    >>> bend(torch.tensor([[1.5], [2.5]])).tolist()
    [[1.5, 0.0], [2.0, 0.5]]
    """

    def __init__(self, units: int) -> None:
        super().__init__()
        self.at = nn.Parameter(NARROW * torch.rand(units))

    def forward(self, u: Tensor) -> Tensor:
        return torch.cat([u.minimum(self.at), (u - self.at).relu()], dim=-1)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Bends for inputs which grow by about 1 with every instance."""
        nn.init.uniform_(self.at, 0.0, WIDE, generator=generator)


class MonotoneLinear(nn.Linear):
    """A linear layer whose weights pass a function first, which may make them positive.

    Parameters
    ----------
    in_features, out_features
        As of `nn.Linear`.
    positive
        What weights pass; the identity lets them have any sign.
    inverse
        From a positive weight to what is stored.
    gain
        What the weights of a unit sum to in the beginning.
    cover
        Whether every input begins with a unit that listens to it most (if there are enough units).
        What no unit listens to is slow to be heard.
    last
        Whether the layer gives the result: it listens to all its inputs, and has a bias.

    Examples
    --------
    >>> layer = MonotoneLinear(3, 2, positive=torch.abs)
    >>> bool((layer(torch.ones(3)) >= layer(torch.zeros(3))).all())
    True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        positive: Positive,
        inverse: Positive = torch.abs,
        gain: float = 1.0,
        cover: bool = False,
        last: bool = False,
    ) -> None:
        self.positive, self.inverse = positive, inverse
        self.gain, self.cover, self.last = gain, cover, last
        super().__init__(in_features, out_features, bias=last)

    @property
    def weights(self) -> Tensor:
        """What inputs are multiplied by."""
        return self.positive(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weights, self.bias)

    def reset_parameters(self) -> None:
        """As `draw_weights`, from torch's own generator."""
        self.draw_weights(None)

    @torch.no_grad()
    def draw_weights(self, generator: torch.Generator | None) -> None:
        """Positive weights."""
        if self.last:
            weights = torch.rand(self.weight.shape, generator=generator)
            self.bias.fill_(0.1)  # at 0 the absolute value has no slope
        else:
            weights = torch.randn(self.weight.shape, generator=generator).abs() ** POWER
        if self.cover:
            units = torch.arange(self.out_features)
            weights[units, units % self.in_features] += 4 * weights.sum(1)
        self.weight.copy_(self.inverse(self.gain * weights / weights.sum(1, keepdim=True)))


def monotone_mlp(*sizes: int, positive: Positive, inverse: Positive) -> nn.Sequential:
    """Monotone layers of the given sizes with bends between them.

    >>> net = monotone_mlp(2, 4, 1, positive=torch.abs, inverse=torch.abs)
    >>> bool((net(torch.tensor([1.0, 2.0])) >= net(torch.tensor([1.0, 1.0]))).all())
    True
    """
    layers: list[nn.Module] = []
    width, gain = sizes[0], 1.0
    for size in sizes[1:-1]:
        linear = MonotoneLinear(
            width, size, positive=positive, inverse=inverse, gain=gain, cover=not layers
        )
        layers += [linear, Bend(size)]
        width, gain = 2 * size, 2.0  # up to the bend and beyond it: together one unit
    layers.append(
        MonotoneLinear(
            width, sizes[-1], positive=positive, inverse=inverse, gain=gain * SLOPE, last=True
        )
    )
    return nn.Sequential(*layers)
