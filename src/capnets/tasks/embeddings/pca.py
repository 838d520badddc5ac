"""Embed images by the first principal components of their pixels."""

from __future__ import annotations

from typing import ClassVar, Self, final

import numpy as np

from capnets.progress import TitledProgress
from capnets.tasks.embeddings.base import FEATURES, Embedding, Features, Pixels, scaled
from capnets.tasks.images import Images

__all__ = ["Pca"]


@final
class Pca(Embedding):
    """The first principal components of the pixels. Deterministic; no classes are used."""

    parameters: ClassVar = {"version": 1, "features": FEATURES}

    def fit(self, images: Images, *, progress: TitledProgress | None = None) -> Self:
        """Compute the components from the covariance of the pixels."""
        from sklearn.decomposition import PCA

        self.pca_ = PCA(FEATURES, svd_solver="covariance_eigh")
        self.pca_.fit(_rows(images.pixels[: images.train], images.white))
        return self

    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """Project on the components."""
        features: Features = self.pca_.transform(_rows(pixels, white)).astype(np.float32)
        return features


def _rows(pixels: Pixels, white: int) -> Features:
    return scaled(pixels, white).reshape(len(pixels), -1)
