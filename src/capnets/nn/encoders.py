"""Encoders of instances, decoders of states, and standardisation of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from capnets.errors import InputError
from capnets.nn.random import generator
from capnets.nn.warps import warp

__all__ = [
    "ConvEncoder",
    "Standardize",
    "decoder",
    "each",
    "encode_and_pool",
    "encoder",
    "features_read",
    "final_layer",
    "has_hooks",
    "mlp",
    "rows",
    "width_for",
]

#: Width of the paper's encoder.
WIDTH = 64


def mlp(*sizes: int) -> nn.Sequential:
    """Return fully connected layers of the given sizes with ReLU between them.

    >>> sum(p.numel() for p in mlp(64, 64, 64, 32).parameters())
    10400
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def each(network: nn.Module, x: Float[Tensor, "sets size *features"]) -> Tensor:
    """Apply a network to every instance.

    In memory, the result is ordered by instance first and by set second. Cells read and write this
    order, so nothing is copied between encoder, cell and decoder.
    """
    steps = x.transpose(0, 1)
    if features_read(network) is None:
        y: Tensor = network(steps.contiguous())
        return y.transpose(0, 1)
    # Flattened once here; otherwise every linear layer would flatten steps x sets again.
    rows: Tensor = network(steps.flatten(0, 1))
    return rows.reshape(*steps.shape[:2], *rows.shape[1:]).transpose(0, 1)


def rows(network: nn.Module, x: Float[Tensor, "sets size *features"]) -> Tensor:
    """Apply a network to every instance, in the memory order of `x`.

    Linear layers would flatten sets x instances one by one, and again in the backward pass.
    """
    if features_read(network) is None:
        y: Tensor = network(x)
        return y
    found: Tensor = network(x.flatten(0, 1))
    return found.view(*x.shape[:2], *found.shape[1:])


def encode_and_pool(
    encoder: nn.Module,
    x: Float[Tensor, "sets size *features"],
    pool: Callable[[Float[Tensor, "sets size hidden"]], Float[Tensor, "sets hidden"]],
) -> Float[Tensor, "sets hidden"]:
    """Encode all instances and pool them by a weighted sum, with weights that `pool` knows.

    A sum of linear functions is the linear function of the sum. So the last layer is applied to one
    row per set instead of one per instance.
    """
    *layers, last = (isinstance(encoder, nn.Sequential) and [*encoder]) or [encoder]
    hooked = has_hooks(encoder) or has_hooks(last)
    if type(last) is not nn.Linear or hooked or features_read(encoder) is None:
        return pool(rows(encoder, x))
    h = x.flatten(0, 1)
    for layer in layers:
        h = layer(h)
    h = linear(pool(h.view(*x.shape[:2], h.shape[1])), last.weight)
    bias = last._parameters["bias"]
    return h if bias is None else h + pool(x.new_ones(*x.shape[:2], 1)) * bias


def has_hooks(module: nn.Module) -> bool:
    """Return whether a module has hooks of its own."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def width_for(in_features: int) -> int | None:
    """Return the width inside an encoder of many features; None, the paper's, up to 128.

    An eighth of the features, rounded down to a power of two, from 64 to 256.

    >>> [width_for(n) for n in (64, 384, 1024, 1536, 2560)]
    [None, 64, 128, 128, 256]
    """
    if in_features <= 2 * WIDTH:
        return None
    return int(min(max(WIDTH, 2 ** int(math.log2(in_features / 8))), 4 * WIDTH))


def encoder(in_features: int, hidden: int, *, layers: int = 3, width: int = WIDTH) -> nn.Sequential:
    """Return the encoder ε of the paper: `layers` fully connected layers, `width` wide inside."""
    if layers < 1:
        raise InputError(f"an encoder needs at least one layer, not {layers}")
    return mlp(in_features, *[width] * (layers - 1), hidden)


def decoder(in_features: int, outputs: int, *, layers: int = 3, hidden: int = 32) -> nn.Sequential:
    """Return the decoder δ of the paper: `layers` hidden layers and an output layer."""
    return mlp(in_features, *[hidden] * layers, outputs)


def features_read(encoder: nn.Module) -> int | None:
    """Return the number of features an encoder reads, or None if its first layer is not linear.

    >>> features_read(mlp(3, 8)), features_read(ConvEncoder(8))
    (3, None)
    """
    while isinstance(encoder, nn.Sequential) and len(encoder):
        encoder = encoder[0]
    return encoder.in_features if isinstance(encoder, nn.Linear) else None


def final_layer(decoder: nn.Sequential) -> nn.Linear:
    """Return the last layer of a decoder; training sets its bias to the mean label."""
    layer = decoder[-1] if len(decoder) else None
    if not isinstance(layer, nn.Linear):
        raise InputError(
            f"the last layer of a decoder must be linear, not {type(layer).__name__}: "
            "training starts with its bias at the mean label"
        )
    return layer


class ConvEncoder(nn.Module):
    """Encode pictures (channels x height x width), for training from pixels.

    Three convolutions, each with half the resolution and twice the channels of the one before, then
    a fully connected layer. Strides reduce the resolution instead of pooling, which would compute
    most activations only to discard them.

    Parameters
    ----------
    hidden
        Features of an instance.
    channels
        Channels of the pictures.
    width
        Channels of the first convolution.
    warp
        Whether to warp the pictures at random during training (see `capnets.nn.warps`).
    """

    def __init__(
        self, hidden: int, *, channels: int = 1, width: int = 16, warp: bool = False
    ) -> None:
        super().__init__()
        self.channels = channels
        self.warp = warp
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, width, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveMaxPool2d(4),  # 28 x 28 pixels are 4 x 4 by now; other sizes may differ
        )  # fmt: skip
        for layer in self.convolutions:
            # Preserve the scale of the signal, as for dense layers (`capnets.training.init`).
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        self.output = nn.Linear(4 * width * 16, hidden)

    def forward(self, x: Float[Tensor, "sets size *picture"]) -> Float[Tensor, "sets size hidden"]:
        if x.ndim != 5 or x.shape[2] != self.channels or min(x.shape[3:]) < 4:
            raise InputError(
                f"instances have shape {tuple(x.shape[2:])}; expected pictures of shape "
                f"{self.channels} x height x width, of at least 4 x 4"
            )
        pictures = x.flatten(0, 1)
        if self.warp and self.training:
            pictures = warp(pictures, generator(x.device), fill="border")
        features: Tensor = self.output(self.convolutions(pictures).flatten(1))
        return features.view(*x.shape[:2], features.shape[1])


class Standardize(nn.Module):
    """Scale features to mean 0 and deviation 1 over the training instances.

    Mean and scale are saved with the network. In training, `dropout` sets a share of the features
    to their mean.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, in_features: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.register_buffer("mean", torch.zeros(in_features))
        self.register_buffer("scale", torch.ones(in_features))

    def learn(self, mean: Tensor, deviation: Tensor) -> None:
        """Set mean and scale; constant columns keep scale 1."""
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > 1e-6, 1 / deviation.clamp_min(1e-6), 1.0))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != len(self.mean):  # one column would be broadcast
            raise InputError(f"instances have {x.shape[-1]} features, expected {len(self.mean)}")
        # In place: with thousands of features, allocating memory dominates the time.
        x = (x - self.mean).mul_(self.scale)
        return blank_(x, self.dropout) if self.training and self.dropout else x


def blank_(x: Tensor, share: float) -> Tensor:
    """Apply dropout in place, from sixteen random bits per number; exact to 1/65,536.

    torch draws a full random number for each and takes five times as long, which was half of the
    training time for small sets with many features.
    """
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None, generator=generator(x.device))
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    # Products run over vectors of numbers; masks branch on every bit and take forty times as long.
    kept = bits.ge_(round(65536 * share) - 32768).to(x.dtype)
    return x.mul_(kept).mul_(1 / (1 - share))
