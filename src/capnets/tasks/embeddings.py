"""Images to vectors of 64 features, computed once and kept in the cache.

`pca` and `patches` look at training images only and never at a class, so that the premise of
learning from set labels alone stays intact. `cnn` is trained on the classes of the training images:
it shows what features made with instance labels would give, and is no fair start for a comparison.

Whatever the embedding, its features are centred and then divided by *one* number, so that they have
unit variance on average. Dividing each by its own deviation would blow up the last principal
components, which carry mostly noise, to the size of the first.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from capnets.atomic import write_json, writing
from capnets.errors import unknown
from capnets.tasks.files import Progress, cache_folder
from capnets.tasks.images import Images

__all__ = ["EMBEDDINGS", "FEATURES", "Embedding", "default_embedding", "embed"]

FEATURES = 64

Pixels = NDArray[np.uint8]
Features = NDArray[np.float32]


class Embedding(ABC):
    """A map from images to features, fitted on training images."""

    name: ClassVar[str]
    uses_classes: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, int | float]]
    """All that its output depends on, apart from the images; part of the cache's file name."""

    @abstractmethod
    def fit(self, images: Images, *, seed: int, progress: Progress | None = None) -> Self:
        """Learn from the training images alone."""

    @abstractmethod
    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """The features of some images; images x features."""


@final
class Pca(Embedding):
    """The first principal components of the pixels."""

    name = "pca"
    parameters: ClassVar[Mapping[str, int | float]] = {"version": 1, "features": FEATURES}

    def fit(self, images: Images, *, seed: int, progress: Progress | None = None) -> Self:
        """Learn the components; nothing is random."""
        from sklearn.decomposition import PCA

        pixels = images.pixels[: images.train]
        # Through the covariance of the pixels: exact, and quick for many images.
        self.pca_ = PCA(FEATURES, svd_solver="covariance_eigh")
        self.pca_.fit(_flat(pixels, images.white))
        return self

    def transform(self, pixels: Pixels, *, white: int) -> Features:
        """Project on the components."""
        features: Features = self.pca_.transform(_flat(pixels, white)).astype(np.float32)
        return features


EMBEDDINGS: dict[str, type[Embedding] | None] = {"none": None, "pca": Pca}
"""None stands for the pixels themselves."""


def default_embedding(source: str) -> str:
    """What a source is embedded with if nothing is said: the digits are 64 pixels already."""
    return "none" if source == "digits" else "pca"


def embed(images: Images, embedding: str, *, progress: Progress | None = None) -> Features:
    """The features of all images of a source, row for row, from the cache where it has them.

    Parameters
    ----------
    images
        The source.
    embedding
        One of `EMBEDDINGS`. `none` gives the pixels: 64 features for images of 8 x 8, otherwise
        images of one channel (for networks that read images).
    progress
        Told how far the work is.
    """
    if embedding not in EMBEDDINGS:
        raise unknown("embedding", embedding, EMBEDDINGS)
    kind = EMBEDDINGS[embedding]
    if kind is None:
        return _pixels(images)
    key = json.dumps(dict(kind.parameters), sort_keys=True)
    stem = f"{images.name}-{embedding}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    path = cache_folder() / "embeddings" / f"{stem}.npy"
    features = _load(path, rows=len(images.pixels))
    if features is None:
        features = _computed(images, kind(), progress)
        _save(path, features, {"source": images.name, "embedding": embedding, "parameters": key})
    return features


def _computed(images: Images, embedding: Embedding, progress: Progress | None) -> Features:
    embedding.fit(images, seed=0, progress=progress)
    total = len(images.pixels)
    features = np.empty((total, FEATURES), dtype=np.float32)
    for start in range(0, total, 1000):
        chunk = images.pixels[start : start + 1000]
        features[start : start + 1000] = embedding.transform(chunk, white=images.white)
        if progress:
            progress(f"embedding {images.name}", min(start + 1000, total), total)
    return _standardised(features, images.train)


def _standardised(features: Features, train: int) -> Features:
    seen = features[:train].astype(np.float64)
    mean, deviation = seen.mean(0).astype(np.float32), np.float32(np.sqrt(seen.var(0).mean()))
    standardised: Features = (features - mean) / deviation
    return standardised


def _pixels(images: Images) -> Features:
    values = _flat(images.pixels, images.white)
    if values.shape[1] == FEATURES:
        return _standardised(values, images.train)
    # One mean for all pixels: neighbouring pixels must stay comparable.
    seen = values[: images.train]
    values -= np.float32(seen.mean(dtype=np.float64))
    values /= np.float32(seen.std(dtype=np.float64))
    return values.reshape(-1, 1, *images.pixels.shape[1:])


def _flat(pixels: Pixels, white: int) -> Features:
    return pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(white)


# The cache ----------------------------------------------------------------------------------------


def _save(path: Path, features: Features, about: dict[str, Any]) -> None:
    with writing(path) as temporary, temporary.open("wb") as file:
        np.save(file, features, allow_pickle=False)
    # The note comes last: without it, or with another checksum in it, the features do not count.
    write_json(path.with_suffix(".json"), about | {"sha256": _sha256(features)})


def _load(path: Path, *, rows: int) -> Features | None:
    """What the cache has, or None if that is nothing or not what was put there."""
    try:
        about = json.loads(path.with_suffix(".json").read_text())
        features: Features = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    intact = len(features) == rows and _sha256(features) == about.get("sha256")
    return features if intact else None


def _sha256(features: Features) -> str:
    return hashlib.sha256(np.ascontiguousarray(features).data).hexdigest()
