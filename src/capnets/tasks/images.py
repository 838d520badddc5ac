"""Load images with classes: scikit-learn's digits, MNIST, Fashion-MNIST."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from capnets.errors import InputError, unknown
from capnets.progress import TitledProgress
from capnets.tasks.files import read

__all__ = ["SOURCES", "Images", "load_images"]

DIGIT_NAMES = tuple("0123456789")
FASHION_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

# Digits are grouped by writer, so that held-out digits have other writers than training digits.
DIGITS_TRAIN = 1437


@dataclass(frozen=True, eq=False)
class Images:
    """All images of a source: training images first, then held-out images.

    Parameters
    ----------
    name
        Name of the source.
    pixels
        Images x height x width; 0 is background, `white` is the foreground.
    classes
        One class per image.
    train
        Number of training images.
    white
        The largest pixel value.
    class_names
        Names of the classes.
    """

    name: str
    pixels: NDArray[np.uint8]
    classes: NDArray[np.int64]
    train: int
    white: int
    class_names: tuple[str, ...]

    def rows(self, part: str) -> NDArray[np.int64]:
        """Return the rows of a part, `train` or `test`."""
        if part not in ("train", "test"):
            raise unknown("part of the images", part, ("train", "test"))
        return np.arange(self.train) if part == "train" else np.arange(self.train, len(self.pixels))


def load_images(source: str, *, progress: TitledProgress | None = None) -> Images:
    """Load all images of a source.

    >>> digits = load_images("digits")
    >>> digits.pixels.shape, digits.train
    ((1797, 8, 8), 1437)
    """
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    return SOURCES[source](progress)


def _digits(progress: TitledProgress | None) -> Images:
    from sklearn.datasets import load_digits

    data = load_digits()
    return Images(
        "digits", data.images.astype(np.uint8), data.target.astype(np.int64),
        train=DIGITS_TRAIN, white=16, class_names=DIGIT_NAMES,
    )  # fmt: skip


def _idx_images(name: str, class_names: tuple[str, ...], progress: TitledProgress | None) -> Images:
    pixels, classes = (
        [read_idx(f"{name}/{part}-{kind}.gz", progress=progress) for part in ("train", "t10k")]
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    return Images(
        name, np.concatenate(pixels), np.concatenate(classes).astype(np.int64),
        train=len(pixels[0]), white=255, class_names=class_names,
    )  # fmt: skip


def read_idx(name: str, *, progress: TitledProgress | None = None) -> NDArray[np.uint8]:
    """Read a data file in the IDX format (bytes, any number of axes) as an array."""
    content = read(name, progress=progress)
    zeros, kind, axes = struct.unpack_from(">HBB", content)
    if zeros or kind != 0x08:
        raise InputError(f"{name} is not an IDX file of bytes")
    shape = struct.unpack_from(f">{axes}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


SOURCES: dict[str, Callable[[TitledProgress | None], Images]] = {
    "digits": _digits,
    "mnist": partial(_idx_images, "mnist", DIGIT_NAMES),
    "fashion-mnist": partial(_idx_images, "fashion-mnist", FASHION_NAMES),
}
