"""Maps: the added value of every instance at its place.

Added values sum to the prediction minus the baseline, so the sums of any regions that divide a
slide do too. Attention weights have no such property.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.explain.render.instances import Features, Places
from capnets.files import write_bytes, write_text
from capnets.ingest.feature_files import smallest_step
from capnets.ingest.set_data import Part
from capnets.sets import Array, Sets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ValueMap", "maps_of", "places_of", "tiles_of", "value_maps"]

#: Colours of values above and below 0, and their names in QuPath.
RAISES, LOWERS = (0, 114, 178), (213, 94, 0)
#: Share of the tiles whose values the colours cover; single extremes would make the rest white.
COVERED = 0.99


@dataclass(frozen=True, eq=False)
class ValueMap:
    """The values of the instances of one file, and their places.

    Parameters
    ----------
    name
        Name of the file.
    values
        One per instance.
    coords
        Upper left corners of the tiles: instances x 2.
    side
        Side of a tile.
    length
        Unit of coordinates and side: `px` of the full image, or `um`.
    unit
        Unit and meaning of the values, for the colour bar.
    """

    name: str
    values: Array
    coords: Array
    side: float
    length: str = "px"
    unit: str = "added value"

    @property
    def total(self) -> float:
        """Sum of all values."""
        return float(self.values.sum())

    @property
    def largest(self) -> float:
        """Absolute value from which colours are full."""
        return float(np.quantile(np.abs(self.values), COVERED)) or 1.0

    def region_sum(self, left: float, top: float, right: float, bottom: float) -> float:
        """Return the sum of the tiles whose centres lie in a rectangle.

        Left and upper edges belong to the rectangle: regions side by side share no tile.
        """
        x, y = (self.coords + self.side / 2).T
        inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        return float(self.values[inside].sum())

    def grid(self, rows: int, columns: int) -> tuple[Array, Array, Array]:
        """Divide the map evenly; return sums (rows x columns) and the edges along x and y."""
        low, high = self.coords.min(0), self.coords.max(0) + self.side
        x, y = (np.linspace(low[a], high[a], n + 1) for a, n in ((0, columns), (1, rows)))
        sums = [
            [self.region_sum(x[c], y[r], x[c + 1], y[r + 1]) for c in range(columns)]
            for r in range(rows)
        ]
        return np.array(sums), x, y

    def extremes(self, count: int = 5) -> tuple[Array, Array]:
        """Return the instances with the largest and with the smallest values."""
        order = np.argsort(self.values, kind="stable")
        count = min(count, len(order))
        return order[::-1][:count], order[:count]

    def plot(self, *, regions: int = 3, ax: Axes | None = None) -> Figure:
        """Draw the tiles coloured by value, with the sums of regions x regions rectangles."""
        from capnets.explain.render.map_figure import plot_map

        return plot_map(self, regions=regions, ax=ax)

    def to_geojson(self, *, pixel: float | None = None) -> dict[str, Any]:
        """Return the tiles as a feature collection that QuPath reads.

        Parameters
        ----------
        pixel
            Side of a pixel in micrometres; required if coordinates are in micrometres, because
            QuPath places objects by pixels of the full image.
        """
        if self.length != "px" and not pixel:
            raise InputError(
                f"{self.name}: coordinates are in micrometres, and QuPath needs pixels; give the "
                "side of a pixel in micrometres (--pixel 0.25)"
            )
        scale = 1.0 if self.length == "px" or not pixel else 1 / pixel
        return {
            "type": "FeatureCollection",
            "features": [
                _tile(number, scale * corner, scale * self.side, float(value))
                for number, (corner, value) in enumerate(
                    zip(np.asarray(self.coords, np.float64), self.values, strict=True)
                )
            ],
        }

    def save(self, folder: str | Path, *, pixel: float | None = None) -> list[Path]:
        """Write NAME.png and NAME.geojson into a folder; return their paths."""
        import io

        image, objects = (Path(folder) / f"{self.name}{end}" for end in (".png", ".geojson"))
        text = json.dumps(self.to_geojson(pixel=pixel), allow_nan=False)
        buffer = io.BytesIO()
        self.plot().savefig(buffer, format="png")
        write_bytes(image, buffer.getvalue())
        write_text(objects, text + "\n")
        return [image, objects]


def value_maps(explanation: Explanation, sets: Sets, parts: Sequence[Part]) -> list[ValueMap]:
    """Return one map per file of the explained sets.

    Parameters
    ----------
    explanation
        Values of these sets.
    sets
        The explained sets, with coordinates.
    parts
        The rows of each file, as `read_folder` returns them.
    """
    return maps_of(explanation, places_of(sets, parts))


def places_of(sets: Sets, parts: Sequence[Part]) -> Places:
    """Return where the instances of some sets are.

    Parameters
    ----------
    sets
        The sets, with coordinates.
    parts
        The rows of each file, as `read_folder` returns them.
    """
    if sets.coords is None:
        raise InputError("these sets have no coordinates: a map needs files with `coords`")
    rows = np.asarray(sets.index)
    coords = np.asarray(sets.coords[rows], dtype=np.float64)
    of = np.full(len(rows), -1)
    used: list[tuple[str, float, str]] = []
    for part in parts:
        here = (rows >= part.start) & (rows < part.stop)
        if here.any():
            if not part.unit or not np.isfinite(coords[here]).all():
                raise InputError(
                    f"{part.name} has no coordinates: a map needs `coords` in the file"
                )
            of[here] = len(used)
            used.append((Path(part.name).stem, part.side or smallest_step(coords[here]), part.unit))
    names, sides, lengths = zip(*used, strict=True) if used else ((), (), ())
    return Places(coords, of, names, sides, lengths)


def tiles_of(sets: Sets, parts: Sequence[Part]) -> Features:
    """Return the instances of a feature folder by number and place in their file."""
    rows = np.asarray(sets.index)
    starts = np.array([part.start for part in parts])
    first = starts[np.searchsorted(starts, rows, "right") - 1]
    names = tuple(f"tile {row}" for row in rows - first)
    if sets.coords is None:
        return Features(np.zeros((len(rows), 0)), (), names)
    places = places_of(sets, parts)
    return Features(places.coords, ("x", "y"), names, places=places)


def maps_of(explanation: Explanation, places: Places) -> list[ValueMap]:
    """Return one map per file of an explanation, given where its instances are."""
    unit = f"added value{f' to {explanation.output}' if explanation.output else ''}"
    unit += f" ({explanation.unit}s)" if explanation.unit else ""
    maps = []
    _, first = np.unique(places.file, return_index=True)
    for f in places.file[np.sort(first)]:  # in the order of the sets
        here = np.flatnonzero(places.file == f)
        name, side, length = places.names[f], places.sides[f], places.lengths[f]
        maps.append(
            ValueMap(name, explanation.values[here], places.coords[here], side, length, unit)
        )
    return maps


def _tile(number: int, corner: Array, side: float, value: float) -> dict[str, Any]:
    (left, top), right, bottom = corner.tolist(), float(corner[0] + side), float(corner[1] + side)
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    name, colour = ("adds", RAISES) if value >= 0 else ("subtracts", LOWERS)
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "objectType": "tile",
            "name": f"tile {number}",
            "classification": {"name": name, "color": list(colour)},
            "measurements": {"added value": value},
        },
    }
