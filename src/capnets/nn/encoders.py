"""What turns one instance into features, and a state into a number."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capnets.errors import InputError

__all__ = ["ConvEncoder", "Standardize", "decoder", "encoder", "mlp"]


def mlp(*sizes: int) -> nn.Sequential:
    """Fully connected layers of the given sizes with ReLU between them.

    >>> sum(p.numel() for p in mlp(64, 64, 64, 32).parameters())
    10400
    """
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def encoder(in_features: int, hidden: int, *, layers: int = 3, width: int = 64) -> nn.Sequential:
    """The paper's ε: `layers` fully connected layers, the inner ones `width` wide."""
    if layers < 1:
        raise InputError(f"an encoder needs at least one layer, not {layers}")
    return mlp(in_features, *[width] * (layers - 1), hidden)


def decoder(in_features: int, outputs: int, *, layers: int = 3, hidden: int = 32) -> nn.Sequential:
    """The paper's δ: `layers` hidden layers and one more for the scalar."""
    return mlp(in_features, *[hidden] * layers, outputs)


class ConvEncoder(nn.Module):
    """Pictures (channels x height x width) to features, for training from pixels.

    Two convolutions of 5 x 5 with pooling, then one fully connected layer: the smallest network that
    reads digits well, because it is applied to every instance of every set.
    """

    def __init__(self, hidden: int, *, channels: int = 1, width: int = 16) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool2d(4),
        )  # fmt: skip
        self.output = nn.Linear(2 * width * 16, hidden)

    def forward(self, x: Float[Tensor, "sets size channels height width"]) -> Tensor:
        pictures = self.convolutions(x.flatten(0, 1))
        features: Tensor = self.output(pictures.flatten(1))
        return features.unflatten(0, x.shape[:2])


class Standardize(nn.Module):
    """Features with mean 0 and deviation 1 over the training instances, saved with the network."""

    mean: Tensor
    scale: Tensor

    def __init__(self, in_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(in_features))
        self.register_buffer("scale", torch.ones(in_features))

    def learn(self, mean: Tensor, deviation: Tensor) -> None:
        """Set both; a column that never varies keeps scale 1."""
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > 1e-6, 1 / deviation.clamp_min(1e-6), 1.0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.scale
