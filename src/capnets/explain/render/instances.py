"""Describe how instances are displayed: as images, sentences, or named features."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.sets import Array, Sets
from capnets.sets.precision import HALF

__all__ = [
    "MOST_NUMBERS",
    "Features",
    "Images",
    "Instances",
    "Places",
    "Texts",
    "checked",
    "instances_of",
    "png_uri",
    "words_of",
]

#: Largest number of features, over all instances, that an explanation copies.
MOST_NUMBERS = 2**24
#: Number of features in the words for an instance: those most correlated with the values.
MOST_WORDS = 3


@dataclass(frozen=True, eq=False)
class Images:
    """Instances that are images.

    Parameters
    ----------
    pixels
        Instances x height x width (grey) or instances x height x width x 3.
    white
        The pixel value of full brightness.
    names
        A caption for each instance; None for none.
    """

    pixels: Array
    white: float = 255.0
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: Array) -> Images:
        """Return some of the instances."""
        return Images(self.pixels[rows], self.white, _taken(self.names, rows))

    def label(self, i: int) -> str:
        """Return the caption of instance i."""
        return f"image {i + 1}" if self.names is None else self.names[i]

    def uri(self, i: int) -> str:
        """Return image i as a data URI, so that a page needs no other file."""
        bright = np.clip(self.pixels[i] / self.white, 0, 1)
        return png_uri((255 * bright).round().astype(np.uint8))


@dataclass(frozen=True)
class Texts:
    """Instances that are sentences."""

    sentences: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sentences)

    def take(self, rows: Array) -> Texts:
        """Return some of the instances."""
        return Texts(tuple(self.sentences[int(i)] for i in rows))

    def label(self, i: int) -> str:
        """Return sentence i."""
        return self.sentences[i]


@dataclass(frozen=True, eq=False)
class Places:
    """Locate instances: tiles of one or several files.

    Parameters
    ----------
    coords
        Upper left corners of the tiles: instances x 2.
    file
        The file of each instance, as an index of the three tuples.
    names
        Name of each file.
    sides
        Side of the tiles of each file.
    lengths
        Unit of coordinates and side of each file: `px` of the full image, or `um`.
    """

    coords: Array
    file: Array
    names: tuple[str, ...]
    sides: tuple[float, ...]
    lengths: tuple[str, ...]

    def take(self, rows: Array) -> Places:
        """Return the places of some of the instances."""
        return replace(self, coords=self.coords[rows], file=self.file[rows])


@dataclass(frozen=True, eq=False)
class Features:
    """Instances that are rows of a table.

    Parameters
    ----------
    table
        Instances x features.
    columns
        The names of the features.
    names
        A name for each instance; None for its number.
    drawings
        A picture of each set, as data URI; None for none.
    places
        Where each instance is; pages draw a map of the values.
    """

    table: Array
    columns: tuple[str, ...]
    names: tuple[str, ...] | None = None
    drawings: tuple[str | None, ...] | None = None
    places: Places | None = None

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: Array) -> Features:
        """Return some of the instances."""
        places = None if self.places is None else self.places.take(rows)
        return Features(self.table[rows], self.columns, _taken(self.names, rows), places=places)

    def label(self, i: int) -> str:
        """Return the name of instance i."""
        return f"instance {i + 1}" if self.names is None else self.names[i]

    def feature(self, i: int, column: int) -> str:
        """Return a feature of instance i as text: "price 7.5", "kind=cup".

        Empty for the indicator of another category.
        """
        name, value = self.columns[column], self.table[i, column]
        if "=" in name and value in (0, 1):
            return name if value else ""
        return f"{name} {value:.0f}" if float(value).is_integer() else f"{name} {value:.4g}"

    def words(self, i: int, columns: list[int]) -> str:
        """Return instance i in words: its name, its place, or some of its features."""
        if self.places is not None:
            x, y = self.places.coords[i]
            return f"{self.label(i)} at {x:.0f}, {y:.0f}"
        features = ", ".join(filter(None, (self.feature(i, column) for column in columns)))
        if self.names is None:
            return features or self.label(i)
        return f"{self.names[i]}: {features}" if features else self.names[i]

    def most_related(self, values: Array, most: int) -> list[int]:
        """Return the columns with the largest absolute correlation with the values.

        All indicators of a category count as one.
        """
        sources = [name.partition("=")[0] for name in self.columns]
        ranked = dict.fromkeys(sources[c] for c in self._by_correlation(values))
        chosen = list(ranked)[:most]
        return [c for c, source in enumerate(sources) if source in chosen]

    def _by_correlation(self, values: Array) -> Array:
        """Return the columns by falling absolute correlation with the values; constants last."""
        centred = self.table - self.table.mean(0)
        scale = centred.std(0) * values.std()
        agreement = np.abs(centred.T @ (values - values.mean())) / len(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = np.where(scale > 0, agreement / scale, -1.0)
        return np.argsort(-correlation, kind="stable")


Instances = Images | Texts | Features


def instances_of(sets: Sets) -> Instances | None:
    """Return the instances of sets as images if they are, else as features.

    None if they are too many to copy.
    """
    if len(sets.index) * int(np.prod(sets.feature_shape)) > MOST_NUMBERS:
        return None
    rows = np.asarray(sets.instances[sets.index])
    if rows.dtype in HALF:
        rows = rows.astype(np.float32)
    if rows.ndim == 4 and rows.shape[1] == 1:
        return Images(rows[:, 0], float(rows.max(initial=1.0)))
    rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    columns = sets.feature_names or tuple(f"feature {i}" for i in range(rows.shape[1]))
    return Features(rows, tuple(columns))


def words_of(explanation: Explanation, instances: Instances | None = None) -> list[str]:
    """Return all instances in words; rows of a table by the features related to the values."""
    shown = checked(instances, explanation)
    if not isinstance(shown, Features):
        return [shown.label(i) for i in range(len(shown))]
    columns = shown.most_related(explanation.values, MOST_WORDS)
    if not columns and shown.names is None:
        return [f"instance {i + 1}" for n in explanation.sizes for i in range(n)]
    return [shown.words(i, columns) for i in range(len(shown))]


def checked(instances: Instances | None, explanation: Explanation) -> Instances:
    """Return the instances to display: those given, those of the explanation, or numbers only."""
    instances = explanation.instances if instances is None else instances
    expected = int(explanation.offsets[-1])
    if instances is None:
        return Features(np.zeros((expected, 0)), ())
    if len(instances) != expected:
        raise InputError(f"{len(instances)} instances given, but {expected} were explained")
    return instances


def _taken(names: tuple[str, ...] | None, rows: Array) -> Any:
    return None if names is None else tuple(names[int(i)] for i in rows)


def png_uri(pixels: Array) -> str:
    """Return an image as a PNG file in a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: Array) -> bytes:
    """Return an image (bytes; height x width, or height x width x 3 or 4) as a PNG file.

    The demonstration shows images, so this needs no drawing library.
    """
    height, width = pixels.shape[:2]

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + name + content + check

    # Eight bits, grey, colours, or colours and opacity; every line begins with its filter, none.
    kind = 0 if pixels.ndim == 2 else {3: 2, 4: 6}[pixels.shape[2]]
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, kind, 0, 0, 0])
    rows = pixels.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
