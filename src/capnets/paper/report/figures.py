"""Draw the paper's figures: printed numbers in grey, ours in colour."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from capnets.errors import check_extra
from capnets.paper.compared import Compared
from capnets.paper.names import BEYOND, COUNTERPART, RECURRENT, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Panel", "draw"]

OURS, OTHER, PAPER = "#0b6e99", "#c4622d", "#9aa0a6"


@dataclass(frozen=True)
class Panel:
    """A drawing: title, description, and the image as a data URL."""

    title: str
    words: str
    source: str


def draw(compared: Compared) -> list[Panel]:
    """Draw the panels of a table that is a figure; none for others or without results."""
    if compared.table.name not in FIGURES or not compared.done:
        return []
    return FIGURES[compared.table.name](compared)


def _larger_sets(compared: Compared) -> list[Panel]:
    sizes = [int(column) for column in compared.columns]
    every = [
        value
        for row in compared.rows
        for column in compared.columns
        for value in (compared.paper(row, column), compared.ours(row, column))
        if value is not None
    ]
    # One scale for all panels, so that networks can be compared with each other.
    limits = (min(every) / 1.5, max(every) * 1.5)
    panels = []
    for model in compared.rows:
        ours = [compared.ours(model, column) or nan for column in compared.columns]
        if all(map(isnan, ours)):
            continue
        printed = [compared.paper(model, column) or nan for column in compared.columns]
        with _Drawing(label(model), "Test error by size of the sets.") as drawing:
            axes = drawing.axes
            if model not in BEYOND:
                axes.plot(sizes, printed, "o-", color=PAPER, label="paper")
            axes.plot(sizes, ours, "o-", color=OURS, label="ours")
            axes.set(yscale="log", xlabel="instances in a set", ylabel="test MSE")
            axes.set(ylim=limits, xticks=sizes)
            axes.legend(frameon=False, loc="upper left")
        panels.append(drawing.panel)
    return panels


def _orders(compared: Compared) -> list[Panel]:
    with _Drawing("Five orders", "Test error under each of five orders, by network.") as drawing:
        axes = drawing.axes
        for place, model in enumerate(RECURRENT):
            for shift, color, whose, number in (
                (-0.13, PAPER, "paper", compared.paper),
                (0.13, OURS, "ours", compared.ours),
            ):
                found = [number(model, column) for column in compared.columns]
                values = [value for value in found if value is not None]
                axes.plot(
                    [place + shift] * len(values), values, "o", ms=4, color=color, alpha=0.8,
                    label=whose if not place else None,
                )  # fmt: skip
        axes.set(ylabel="test MSE", yscale="log")
        axes.set_xticks(range(len(RECURRENT)), [label(model) for model in RECURRENT], fontsize=8)
        axes.legend(frameon=False)
    return [drawing.panel]


def _histograms(compared: Compared) -> list[Panel]:
    panels = []
    for (task, _), shown in compared.by_place.items():
        if not isinstance(shown.ours, tuple):
            continue
        printed = shown.entry.published
        assert isinstance(printed, tuple)
        with _Drawing(task, f"Share of sets by label, {task}.") as drawing:
            axes = drawing.axes
            # Shares, not counts: scales have different numbers of sets.
            axes.fill_between(
                range(len(printed)), [n / sum(printed) for n in printed], step="mid",
                color=PAPER, alpha=0.6, label="paper",
            )  # fmt: skip
            ours = shown.ours
            axes.step(
                range(len(ours)), [n / sum(ours) for n in ours], where="mid", color=OURS, lw=1,
                label="ours",
            )  # fmt: skip
            axes.set(xlabel="label", ylabel="share of sets")
            axes.legend(frameon=False)
        panels.append(drawing.panel)
    return panels


def _curves(compared: Compared) -> list[Panel]:
    with _Drawing("Learning curves", "Validation error by epoch, with and without the prior.") as d:
        for row, color in (("without prior", OTHER), ("with prior", OURS)):
            curve = compared.by_place[row, "learning curve"].ours
            if isinstance(curve, tuple):
                d.axes.plot(range(1, len(curve) + 1), curve, color=color, label=row)
        d.axes.set(xlabel="epoch", ylabel="validation MSE", yscale="log")
        d.axes.legend(frameon=False)
    return [d.panel]


def _fewer(compared: Compared) -> list[Panel]:
    """Draw the table as lines, capacity networks and counterparts (not in the paper)."""
    panels = []
    for model, other in COUNTERPART.items():
        for task in dict.fromkeys(column.split()[0] for column in compared.columns):
            columns = [c for c in compared.columns if c.split()[0] == task]
            sets = [int(c.split()[1].removesuffix("k")) for c in columns]
            if any(compared.ours(m, c) is None for m in (model, other) for c in columns):
                continue
            title = f"{task}: {label(model)} and {label(other)}"
            with _Drawing(title, "Test error by number of training sets.") as drawing:
                for name, color, line in ((model, OURS, "-"), (other, OTHER, "--")):
                    printed = [compared.paper(name, column) or nan for column in columns]
                    drawing.axes.plot(sets, printed, f"o{line}", ms=4, color=PAPER)
                    ours = [compared.ours(name, column) or nan for column in columns]
                    drawing.axes.plot(sets, ours, f"o{line}", ms=4, color=color, label=label(name))
                drawing.axes.set(
                    xlabel="% of the training sets",  # at every scale
                    ylabel="test MSE",
                    yscale="log",
                    xticks=sets,
                )
                drawing.axes.legend(frameon=False)
            panels.append(drawing.panel)
    return panels


FIGURES: Mapping[str, Callable[[Compared], list[Panel]]] = {
    "larger-sets": _larger_sets,
    "order-points": _orders,
    "label-histograms": _histograms,
    "regularisation": _curves,
    "training-absolute": _fewer,
}


class _Drawing:
    """One panel, as wide as a phone, as SVG in a data URL."""

    axes: Axes
    panel: Panel

    def __init__(self, title: str, words: str) -> None:
        self.title, self.words = title, words

    def __enter__(self) -> _Drawing:
        check_extra("matplotlib", "plot", purpose="drawing figures")
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(3.5, 2.6), layout="constrained")
        self.axes = self.figure.add_subplot()
        self.axes.set_title(self.title, fontsize=10)
        self.axes.grid(alpha=0.25)
        self.axes.spines[["top", "right"]].set_visible(False)
        return self

    def __exit__(self, *error: Any) -> None:
        from matplotlib import rc_context

        content = io.BytesIO()
        # No date and no random names, so that the same records give the same bytes.
        with rc_context({"svg.hashsalt": "capnets", "svg.fonttype": "none"}):
            self.figure.savefig(content, format="svg", metadata={"Date": None})
        code = base64.b64encode(content.getvalue()).decode()
        self.panel = Panel(self.title, self.words, f"data:image/svg+xml;base64,{code}")
