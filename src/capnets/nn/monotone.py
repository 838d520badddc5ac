r"""Monotone layers: functions that never decrease when an input grows.

.. math:: u = W h, \qquad h' = [\,\min(u, \kappa),\; \max(u - \kappa, 0)\,], \qquad W \ge 0

With ReLU alone, such layers only represent convex functions. A unit that outputs its part below the
bend :math:`\kappa` and its part above can bend either way, depending on the weights of the next
layer. It always has a gradient, because one of the two parts is active.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["Bend", "MonotoneLinear", "monotone_mlp"]

Positive = Callable[[Tensor], Tensor]

#: Initial weights are this power of normal numbers, so that each unit depends on a few inputs.
#: With positive weights of similar size, all units would start, and stay, as the mean of inputs.
POWER = 8
#: Upper bounds of the initial bends: for encoders with wide initial weights, and with torch's.
WIDE, NARROW = 8.0, 0.5
#: Slope of the whole network when all inputs grow by 1.
SLOPE = 5.0


class Bend(nn.Module):
    """Split every unit into its part below a learned bend and its part above.

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
        """Draw bends for inputs that grow by about 1 with every instance."""
        nn.init.uniform_(self.at, 0.0, WIDE, generator=generator)


class MonotoneLinear(nn.Linear):
    """A linear layer whose weights are mapped first, usually to positive numbers.

    Parameters
    ----------
    in_features, out_features
        As of `nn.Linear`.
    positive
        The map; with the identity, weights may have any sign.
    inverse
        Map from a positive weight to the stored parameter.
    gain
        Initial sum of the weights of a unit.
    cover
        Whether every input starts as the largest weight of some unit, if there are enough units.
        Inputs that no unit depends on are learned slowly.
    last
        Whether this is the output layer: it depends on all inputs, and has a bias.

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
        """Return the mapped weights."""
        return self.positive(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weights, self.bias)

    def reset_parameters(self) -> None:
        """Draw weights as `draw_weights` does, from torch's own generator."""
        self.draw_weights(None)

    @torch.no_grad()
    def draw_weights(self, generator: torch.Generator | None) -> None:
        """Draw positive weights."""
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
    """Return monotone layers of the given sizes with bends between them.

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
        width, gain = 2 * size, 2.0  # below and above the bend: together one unit
    layers.append(
        MonotoneLinear(
            width, sizes[-1], positive=positive, inverse=inverse, gain=gain * SLOPE, last=True
        )
    )
    return nn.Sequential(*layers)
