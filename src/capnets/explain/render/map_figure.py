"""Draw a map of added values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from capnets.explain.render.figures import INK, LOWERS, RAISES, new_figure, plain
from capnets.explain.render.rows import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from capnets.explain.maps import ValueMap

__all__ = ["plot_map"]


def plot_map(found: ValueMap, *, regions: int, ax: Axes | None = None) -> Figure:
    """Draw the tiles of a map, and the sums of regions x regions rectangles."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LinearSegmentedColormap

    width, height = (found.coords.max(0) + found.side - found.coords.min(0)).tolist()
    tall = 1.2 + 5.6 * min(2.0, height / width)
    figure, axes = new_figure(7.0, tall, layout="compressed", ax=ax)
    corners = found.side * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    tiles = PolyCollection(
        list(found.coords[:, None] + corners),
        array=found.values,
        cmap=LinearSegmentedColormap.from_list("values", [LOWERS, "#FFFFFF", RAISES]),
        clim=(-found.largest, found.largest),
        edgecolors="none",
        rasterized=True,
    )
    axes.add_collection(tiles)
    sums, x, y = found.grid(regions, regions)
    for (row, column), total in np.ndenumerate(sums):
        axes.text(
            (x[column] + x[column + 1]) / 2, (y[row] + y[row + 1]) / 2, f"{total:+.3g}",
            ha="center", va="center", fontsize=8, color=INK,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    for edge in x[1:-1]:
        axes.axvline(edge, color=INK, lw=0.6, ls=":")
    for edge in y[1:-1]:
        axes.axhline(edge, color=INK, lw=0.6, ls=":")
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[-1], y[0])  # images begin at the top
    axes.set_aspect("equal")
    axes.set_facecolor("#EEEEEE")
    axes.set_xlabel(f"x ({found.length.replace('um', 'µm')})")
    axes.set_ylabel(f"y ({found.length.replace('um', 'µm')})")
    axes.set_title(
        plain(f"{found.name}: all tiles add {number(found.total)}"), fontsize=9, loc="left"
    )
    figure.colorbar(tiles, ax=axes, shrink=0.8, extend="both", label=plain(found.unit))
    return figure
