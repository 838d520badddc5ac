"""Draw explanations with matplotlib, without touching its global state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError, check_extra, unknown
from capnets.explain.evaluation import RemovalCurve
from capnets.explain.explanation import Explanation
from capnets.explain.render.instances import Images, Instances, checked, words_of
from capnets.explain.render.rows import SetRows, digits, number, rows_of
from capnets.sets import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["KINDS", "class_matrix", "curves", "new_figure", "plain", "plot", "strip", "waterfall"]

RAISES, LOWERS, INK = "#0072B2", "#D55E00", "#333333"  # Okabe-Ito: colour-blind safe


def plot(
    explanation: Explanation,
    k: int = 0,
    *,
    kind: str = "waterfall",
    instances: Instances | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw set k of an explanation as `waterfall` or `strip`."""
    if kind not in KINDS:
        raise unknown("kind of figure", kind, KINDS)
    figure: Figure = KINDS[kind](explanation, k, instances=instances, ax=ax)
    return figure


def waterfall(
    explanation: Explanation, k: int, *, instances: Instances | None = None, ax: Axes | None = None
) -> Figure:
    """Draw one bar per instance, from the baseline to the prediction."""
    shown, looks = rows_of(explanation, k), checked(instances, explanation)
    start = explanation.span(k).start
    figure, axes = new_figure(5.0, 0.8 + 0.28 * len(shown.rows), ax=ax)
    places = np.arange(len(shown.rows))
    axes.barh(
        places, [r.value for r in shown.rows], left=[r.start for r in shown.rows], height=0.7,
        color=_colours(shown), xerr=_whiskers(shown), error_kw={"lw": 1, "ecolor": INK},
    )  # fmt: skip
    for place, row in zip(places, shown.rows, strict=True):
        if row.expected is not None:
            axes.plot(row.start + row.expected, place, "D", ms=5, mfc="none", mec=INK, mew=1.1)
    words = words_of(explanation, looks)
    labels = [words[start + r.position] for r in shown.rows]
    axes.set_yticks(places, [plain(s if len(s) < 40 else s[:38] + "…") for s in labels])
    if isinstance(looks, Images):
        axes.set_yticks([])
        for place, row in zip(places, shown.rows, strict=True):
            # Shares of the width along x, instances along y.
            inset = axes.inset_axes(
                (-0.09, place - 0.42, 0.08, 0.84), transform=axes.get_yaxis_transform()
            )
            _show(looks, start + row.position, inset)
    axes.axvline(shown.baseline, color=INK, lw=0.8)
    axes.axvline(shown.prediction, color=INK, lw=0.8, ls=":")
    axes.invert_yaxis()
    axes.set_xlabel(_caption(shown))
    return figure


def strip(
    explanation: Explanation, k: int, *, instances: Instances | None = None, ax: Axes | None = None
) -> Figure:
    """Draw images side by side with their values as bars above them."""
    shown, looks = rows_of(explanation, k), checked(instances, explanation)
    if not isinstance(looks, Images):
        raise InputError("a strip needs images: instances=Images(pixels)")
    start = explanation.span(k).start
    many = len(shown.rows)
    figure, axes = new_figure(0.62 * many + 0.6, 2.3, ax=ax)
    places = np.arange(many)
    axes.bar(
        places, [r.value for r in shown.rows], width=0.7, color=_colours(shown),
        yerr=_whiskers(shown), error_kw={"lw": 1, "ecolor": INK},
    )  # fmt: skip
    for place, row in zip(places, shown.rows, strict=True):
        if row.expected is not None:
            axes.plot(place, row.expected, "D", ms=5, mfc="none", mec=INK, mew=1.1)
        # Instances along x, shares of the height along y.
        inset = axes.inset_axes(
            (place - 0.42, -0.62, 0.84, 0.5), transform=axes.get_xaxis_transform()
        )
        _show(looks, start + row.position, inset)
    axes.set_xlim(-0.5, many - 0.5)
    axes.set_xticks(places, [number(r.value, shown.decimals) for r in shown.rows])
    axes.tick_params(axis="x", length=0)
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_title(_caption(shown), fontsize=9, loc="left")
    return figure


def class_matrix(matrix: Array, *, names: Any = None, label: str = "interaction") -> Figure:
    """Draw a class-by-class matrix: orange below zero (redundancy), blue above (synergy)."""
    from matplotlib.colors import LinearSegmentedColormap

    many = len(matrix)
    colours = LinearSegmentedColormap.from_list("interaction", [LOWERS, "#FFFFFF", RAISES])
    largest = float(np.nanmax(np.abs(matrix))) or 1.0
    figure, axes = new_figure(0.42 * many + 1.4, 0.42 * many + 0.6, layout="compressed")
    decimals = max(1, digits(largest) - 1)
    image = axes.imshow(matrix, cmap=colours, vmin=-largest, vmax=largest)
    for (i, j), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            tone = "white" if abs(value) > 0.6 * largest else INK
            axes.text(
                j, i, number(value, decimals), ha="center", va="center", fontsize=7, color=tone
            )
    ticks = [plain(str(name)) for name in (range(many) if names is None else names)]
    axes.set_xticks(range(many), ticks)
    axes.set_yticks(range(many), ticks)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, shrink=0.8, label=label)
    return figure


def curves(found: Mapping[str, RemovalCurve], *, insert: bool = False) -> Figure:
    """Draw the deletion or insertion curves of several methods."""
    figure, axes = new_figure(4.6, 3.2)
    styles = ["-", "--", "-.", ":"]
    palette = [RAISES, LOWERS, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK]
    for n, (name, one) in enumerate(found.items()):
        axes.plot(
            100 * one.shares, one.predictions, styles[n % 4], color=palette[n % 7],
            label=plain(f"{name} ({number(one.aopc)})"),
        )  # fmt: skip
    axes.set_xlabel(f"instances {'inserted' if insert else 'removed'}, highest value first (%)")
    axes.set_ylabel("prediction")
    axes.legend(frameon=False, fontsize=8)
    return figure


KINDS = {"waterfall": waterfall, "strip": strip}


def plain(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as mathematics.

    >>> plain("a $x_$ b").count(chr(92))
    2
    """
    return text.replace("$", r"\$")


def new_figure(
    width: float, height: float, *, layout: Any = "constrained", ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Return a new figure and its axes, or the given axes and their figure."""
    check_extra("matplotlib", "plot", purpose="drawing figures")
    from matplotlib.figure import Figure

    if ax is None:
        figure = Figure(figsize=(width, height), layout=layout, dpi=150)
        axes = figure.subplots()
    else:
        axes = ax
        figure = ax.get_figure(root=True) or Figure()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _show(images: Images, place: int, axes: Axes) -> None:
    axes.imshow(images.pixels[place], cmap="gray", vmin=0, vmax=images.white)
    axes.set_axis_off()


def _colours(shown: SetRows) -> list[str]:
    return [RAISES if row.value >= 0 else LOWERS for row in shown.rows]


def _whiskers(shown: SetRows) -> list[float] | None:
    found = [row.whisker for row in shown.rows]
    return None if None in found else [float(w or 0.0) for w in found]


def _caption(shown: SetRows) -> str:
    return plain(f"set {shown.name}: {shown.caption}")
