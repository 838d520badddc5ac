"""Draw a map of added values as an image for pages, without matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capnets.explain.render.instances import png_uri
from capnets.sets import Array

if TYPE_CHECKING:
    from capnets.explain.maps import ValueMap

__all__ = ["MapImage", "map_image", "raster"]

#: Largest height and width of an image, in pixels.
LARGEST = 1200
#: Number of pixels that a tile may have along its side.
TILE = 8
#: Number of rectangles along each side of which sums are shown.
REGIONS = 3


@dataclass(frozen=True)
class MapImage:
    """A map as the template needs it.

    Parameters
    ----------
    name
        Name of the file.
    uri
        The image, as data URI.
    width, height
        Size of the image in pixels.
    sums
        Sums of the values of REGIONS x REGIONS rectangles, row after row.
    total, largest
        Sum of all values, and the value from which colours are full.
    unit
        Unit and meaning of the values.
    """

    name: str
    uri: str
    width: int
    height: int
    sums: tuple[float, ...]
    total: float
    largest: float
    unit: str


def map_image(found: ValueMap) -> MapImage:
    """Return a map as an image with the sums of its regions."""
    pixels = raster(found)
    height, width = pixels.shape[:2]
    sums = found.grid(REGIONS, REGIONS)[0].ravel().tolist()
    return MapImage(
        found.name, png_uri(pixels), width, height, tuple(sums), found.total, found.largest,
        found.unit,
    )  # fmt: skip


def raster(found: ValueMap) -> Array:
    """Return height x width x 4 colours: white at 0, transparent where there is no tile."""
    from capnets.explain.maps import LOWERS, RAISES

    low = found.coords.min(0)
    extent = float((found.coords.max(0) - low).max()) + found.side
    scale = min(TILE, LARGEST * found.side / extent) / found.side
    # Tiles that touch on the slide touch in the image, so edges are rounded and not sizes.
    first = np.rint((found.coords - low) * scale).astype(np.int64)
    last = np.rint((found.coords - low + found.side) * scale).astype(np.int64)
    last = np.maximum(last, first + 1)
    width, height = last.max(0)
    strength = np.clip(np.abs(found.values) / found.largest, 0, 1)[:, None]
    full = np.where(found.values[:, None] >= 0, RAISES, LOWERS)
    colours = np.rint(255 + strength * (full - 255)).astype(np.uint8)
    pixels = np.zeros((height, width, 4), np.uint8)
    for (left, top), (right, bottom), colour in zip(first, last, colours, strict=True):
        pixels[top:bottom, left:right, :3] = colour
        pixels[top:bottom, left:right, 3] = 255
    return pixels
