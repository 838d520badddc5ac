"""Embed images with a small convolutional network trained on the classes of single images.

It *uses instance labels*, so it must not be compared with networks that learn from set labels
alone. It shows how much the features matter.
"""

from __future__ import annotations

from typing import ClassVar, Self, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capnets.nn.random import draw_from
from capnets.progress import TitledProgress
from capnets.tasks.counting import CLASSES
from capnets.tasks.embeddings.base import FEATURES, Embedding, Features, Pixels, scaled
from capnets.tasks.images import Images

__all__ = ["Cnn"]

CHANNELS = 16
STEPS = 3000  # of 100 images: five times all of MNIST
BATCH = 100
RATE = 3e-3
SEED = 0


@final
class Cnn(Embedding):
    """The penultimate layer of a network trained on the classes of the training images."""

    parameters: ClassVar = {
        "version": 1,
        "features": FEATURES,
        "channels": CHANNELS,
        "steps": STEPS,
        "batch": BATCH,
        "rate": RATE,
        "seed": SEED,
    }

    def fit(self, images: Images, *, progress: TitledProgress | None = None) -> Self:
        """Train with Adam and a one-cycle schedule."""
        x = torch.from_numpy(scaled(images.pixels[: images.train], images.white))[:, None]
        y = torch.from_numpy(images.classes[: images.train])
        with draw_from(SEED):
            self.body_, head = _body(x.shape[-1], CHANNELS), nn.Linear(FEATURES, CLASSES)
        weights = [*self.body_.parameters(), *head.parameters()]
        optimizer = torch.optim.Adam(weights)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
        generator = torch.Generator().manual_seed(SEED)
        for step in range(STEPS):
            chosen = torch.randint(len(x), (BATCH,), generator=generator)
            loss = F.cross_entropy(head(self.body_(x[chosen])), y[chosen])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            rate.step()
            if progress and (step + 1) % 20 == 0:
                progress(f"training a CNN on the classes of {images.name}", step + 1, STEPS)
        return self

    @torch.no_grad()
    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """Return the penultimate activations of some images."""
        features: Tensor = self.body_(torch.from_numpy(scaled(pixels, white))[:, None])
        return features.numpy()


def _body(side: int, channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * (side // 4) ** 2, FEATURES), nn.ReLU(),
        nn.Linear(FEATURES, FEATURES),
    )  # fmt: skip
