"""Draw global explanations: beeswarm and dependence plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.explain.render.figures import INK, LOWERS, RAISES, new_figure, plain
from capnets.sets import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from capnets.explain.global_explanation import GlobalExplanation

__all__ = ["beeswarm", "categories", "dependence"]

#: Number of points drawn per feature; more only darken the plot.
POINTS = 1000


def beeswarm(found: GlobalExplanation, *, most: int = 10, ax: Axes | None = None) -> Figure:
    """Draw one row per feature: a point per instance at its value, coloured by the feature."""
    chosen = found.strongest(most)
    figure, axes = new_figure(5.6, 0.9 + 0.42 * len(chosen), ax=ax)
    rows = _sample(len(found.values))
    for place, k in enumerate(chosen):
        colour = _ranks(found.features[rows, k])
        _swarm(axes, found.values[rows], place, colour)
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(chosen)), [plain(found.columns[k]) for k in chosen])
    axes.invert_yaxis()
    axes.set_xlabel(_axis(found))
    axes.set_title("orange: low feature, blue: high feature", fontsize=8, loc="left")
    return figure


def dependence(found: GlobalExplanation, k: int, *, ax: Axes | None = None) -> Figure:
    """Draw values against a feature, with the mean in equally populated bins."""
    figure, axes = new_figure(4.6, 3.2, ax=ax)
    rows = _sample(len(found.values))
    axes.scatter(found.features[rows, k], found.values[rows], s=8, alpha=0.4, color=RAISES, lw=0)
    table = found.dependence(k)
    axes.plot(table[found.columns[k]], table["mean"], color=INK, lw=1.5, marker="o", ms=3)
    axes.axhline(0, color=INK, lw=0.6, ls=":")
    axes.set_xlabel(plain(found.columns[k]))
    axes.set_ylabel(_axis(found))
    return figure


def categories(found: GlobalExplanation, *, most: int = 20, ax: Axes | None = None) -> Figure:
    """Draw mean and standard deviation of the values per category."""
    table = found.by_category().head(most)
    figure, axes = new_figure(5.0, 0.9 + 0.28 * len(table), ax=ax)
    places = np.arange(len(table))
    colours = [RAISES if mean >= 0 else LOWERS for mean in table["mean"]]
    axes.barh(
        places, table["mean"], xerr=table["std"].fillna(0), height=0.7, color=colours,
        error_kw={"lw": 1, "ecolor": INK},
    )  # fmt: skip
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(places, [plain(str(name)) for name in table.index])
    axes.invert_yaxis()
    axes.set_xlabel(f"mean {_axis(found)} ± standard deviation")
    return figure


def _axis(found: GlobalExplanation) -> str:
    unit = f" ({found.explanation.unit})" if found.explanation.unit else ""
    return f"added value{unit}"


def _sample(many: int) -> Array:
    return np.unique(np.linspace(0, many - 1, min(POINTS, many)).round().astype(np.int64))


def _ranks(column: Array) -> Array:
    """Return the rank of each number, from 0 to 1, so that outliers do not take all colours."""
    ranks: Array = np.searchsorted(np.sort(column), column, "left")
    return ranks / max(1, int(ranks.max(initial=0)))


def _swarm(axes: Any, values: Array, place: int, colour: Array) -> None:
    """Draw points in a row; points with similar values move apart."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("feature", [LOWERS, "#BBBBBB", RAISES])
    bins = np.linspace(values.min(), values.max() + 1e-12, 60)
    bin_of = np.digitize(values, bins)
    rank = np.zeros(len(values))
    for one in np.unique(bin_of):
        members = np.flatnonzero(bin_of == one)
        rank[members] = np.arange(len(members)) - (len(members) - 1) / 2
    spread = 0.4 / max(1.0, np.abs(rank).max())
    axes.scatter(values, place + rank * spread, c=colour, cmap=colours, s=6, lw=0, vmin=0, vmax=1)
