"""Define the interface of an embedding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from capnets.progress import TitledProgress
from capnets.tasks.images import Images

__all__ = ["FEATURES", "Embedding", "Features", "Pixels", "scaled"]

FEATURES = 64

Pixels = NDArray[np.uint8]
Features = NDArray[np.float32]


class Embedding(ABC):
    """A map from images to 64 features, fitted on training images."""

    parameters: ClassVar[Mapping[str, int | float]]
    """Parameters that determine the output for given images; part of the cache key."""

    @abstractmethod
    def fit(self, images: Images, *, progress: TitledProgress | None = None) -> Self:
        """Learn from the training images alone."""

    @abstractmethod
    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """Return the features of some images: images x features."""


def scaled(pixels: Pixels, white: int) -> Features:
    """Scale pixels to the range from 0 to 1."""
    return pixels.astype(np.float32) / np.float32(white)
