"""Embed images as vectors of 64 features, computed once and cached.

`pca` and `patches` are fitted on training images without classes, so that networks still learn
from set labels alone. `cnn` is trained on the classes of the training images: it shows what
instance labels would give and must not be compared with the others.

Features are centred and divided by *one* number, so that they have unit variance on average.
Dividing each by its own standard deviation would amplify the last ones, which are mostly noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from capnets.errors import unknown
from capnets.progress import TitledProgress
from capnets.tasks.embeddings import cache
from capnets.tasks.embeddings.base import FEATURES, Embedding, Features, scaled
from capnets.tasks.embeddings.cnn import Cnn
from capnets.tasks.embeddings.patches import Patches
from capnets.tasks.embeddings.pca import Pca
from capnets.tasks.images import Images

__all__ = ["EMBEDDINGS", "FEATURES", "Embedding", "default_embedding", "embed"]

EMBEDDINGS: dict[str, Callable[[], Embedding] | None] = {
    "none": None,  # the pixels
    "pca": Pca,
    "patches": Patches,
    "cnn": Cnn,
}

CHUNK = 1000


def default_embedding(source: str) -> str:
    """Return the default embedding of a source. Digits have 64 pixels and need none."""
    return "none" if source == "digits" else "patches"


def embed(images: Images, embedding: str, *, progress: TitledProgress | None = None) -> Features:
    """Return the features of all images of a source, from the cache if possible.

    Parameters
    ----------
    images
        The source.
    embedding
        One of `EMBEDDINGS`. `none` gives the pixels: 64 features for images of 8 x 8, otherwise
        images of one channel, for networks that read images.
    progress
        Called with a description, the amount done and the total.
    """
    if embedding not in EMBEDDINGS:
        raise unknown("embedding", embedding, EMBEDDINGS)
    kind = EMBEDDINGS[embedding]
    if kind is None:
        return _pixels(images)
    fresh = kind()
    path = cache.place(images.name, embedding, fresh.parameters)
    features = cache.load(path, rows=len(images.pixels))
    if features is not None:
        return features
    with cache.alone(path):
        features = cache.load(path, rows=len(images.pixels))  # another process may have written it
        if features is None:
            features = _computed(images, fresh, progress)
            about = {"source": images.name, "embedding": embedding, "parameters": fresh.parameters}
            cache.save(path, features, about)
    return features


def _computed(images: Images, embedding: Embedding, progress: TitledProgress | None) -> Features:
    embedding.fit(images, progress=progress)
    total = len(images.pixels)
    features = np.empty((total, FEATURES), dtype=np.float32)
    for start in range(0, total, CHUNK):
        chunk = images.pixels[start : start + CHUNK]
        features[start : start + CHUNK] = embedding.transform(chunk, white=images.white)
        if progress:
            progress(f"embedding {images.name}", min(start + CHUNK, total), total)
    return _standardised(features, images.train)


def _standardised(features: Features, train: int) -> Features:
    seen = features[:train].astype(np.float64)
    mean, deviation = seen.mean(0).astype(np.float32), np.float32(np.sqrt(seen.var(0).mean()))
    standardised: Features = (features - mean) / deviation
    return standardised


def _pixels(images: Images) -> Features:
    values = scaled(images.pixels, images.white)
    if values[0].size == FEATURES:
        return _standardised(values.reshape(-1, FEATURES), images.train)
    # One mean for all pixels, so that neighbouring pixels remain comparable.
    seen = values[: images.train]
    mean, deviation = seen.mean(dtype=np.float64), seen.std(dtype=np.float64)
    values -= np.float32(mean)
    values /= np.float32(deviation)
    return values[:, None]
