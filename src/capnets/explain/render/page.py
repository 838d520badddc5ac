"""Render explanations as one self-contained HTML file without scripts."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from capnets.explain.explanation import Explanation
from capnets.explain.maps import maps_of
from capnets.explain.render import template
from capnets.explain.render.instances import Features, Images, Instances, Texts, checked
from capnets.explain.render.map_image import MapImage, map_image
from capnets.explain.render.rows import Row, SetRows, number, rows_of

__all__ = ["fragment", "page"]

#: Number of features shown per instance: those most correlated with the values.
MOST_COLUMNS = 6
TITLE = "What each instance adds"
#: Number of sets that a notebook shows.
NOTEBOOK_SETS = 5
#: Number of rows shown of a large set.
FEW = 60


def page(
    explanation: Explanation,
    *,
    instances: Instances | None = None,
    title: str = "",
    source: str = "",
) -> str:
    """Return all sets of an explanation as an HTML page.

    Parameters
    ----------
    explanation
        The sets to show; `Explanation.subset` selects some.
    instances
        How to display the instances, set after set; by default `explanation.instances`.
    title, source
        Heading, and a line on where network and sets come from; by default those of the
        explanation.
    """
    looks = checked(instances, explanation)
    sets = [_drawn(explanation, k, looks) for k in range(len(explanation))]
    default = f"{TITLE} to {explanation.output}" if explanation.output else TITLE
    one = len(explanation) and explanation.covariates is None
    baseline = float(explanation.baselines.mean()) if one else 0.0
    return template("page.html.j2").render(
        title=title or explanation.title or default,
        about=source or explanation.source,
        kind=type(looks).__name__.lower(),
        columns=len(_table(explanation, looks)[1]),
        meaning=explanation.meaning,
        unit=explanation.unit,
        baseline=baseline or None,
        sets=sets,
        named=not isinstance(looks, Texts) and looks.names is not None,
        whiskers=explanation.errors is not None or explanation.spreads is not None,
        over_orders=explanation.spreads is not None,
        expected=explanation.expected is not None,
        signed=bool((explanation.values < 0).any()),
        passes=explanation.passes,
        seconds=explanation.seconds,
        exact=explanation.exact,
    )


def fragment(explanation: Explanation) -> str:
    """Return the first sets of an explanation as HTML for a notebook cell.

    A frame keeps the styles of the page out of the notebook.
    """
    first = explanation.subset(range(min(NOTEBOOK_SETS, len(explanation))))
    rows = int(first.sizes.max(initial=1))
    height = min(800, 320 + 34 * rows)
    text = html.escape(page(first), quote=True)
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe sandbox srcdoc="{text}" style="{style}" title="{TITLE}"></iframe>'


@dataclass(frozen=True)
class Instance:
    """A row with the positions that the template needs, in per cent of the width or height."""

    row: Row
    label: str
    picture: str | None
    fall: dict[str, float | None]
    bar: dict[str, float | None]
    strength: float
    cells: tuple[str, ...]
    sorting: str


@dataclass(frozen=True)
class Drawn:
    """A set as the template needs it."""

    shown: SetRows
    instances: tuple[Instance, ...]
    columns: tuple[str, ...]
    zero: float
    from_: float
    to: float
    every: int
    drawing: str | None = None
    maps: tuple[MapImage, ...] = ()


def _drawn(explanation: Explanation, k: int, looks: Instances) -> Drawn:
    shown = rows_of(explanation, k)
    start = explanation.span(k).start
    low, high = _widened(*shown.levels)
    bottom, top = _widened(*shown.heights)
    longest = max((abs(row.value) for row in shown.rows), default=0.0) or 1.0
    table, columns = _table(explanation, looks)
    every = len(shown.rows)
    if isinstance(looks, Features):
        shown = shown.extremes(FEW)
    places = np.array([start + row.position for row in shown.rows], dtype=np.int64)
    ranks = _ranks(shown, table[places])
    instances = []
    for n, (row, place) in enumerate(zip(shown.rows, places, strict=True)):
        instances.append(
            Instance(
                row=row,
                label=looks.label(int(place)),
                picture=looks.uri(int(place)) if isinstance(looks, Images) else None,
                fall=_scaled(row, row.start, low, high),
                bar=_scaled(row, 0.0, bottom, top),
                strength=abs(row.value) / longest,
                cells=tuple(number(float(v)) for v in table[place]),
                sorting=";".join(f"--o{c}:{int(r)}" for c, r in enumerate(ranks[:, n])),
            )
        )
    return Drawn(
        shown=shown,
        instances=tuple(instances),
        columns=columns,
        zero=_share(0.0, bottom, top),
        from_=_share(shown.baseline, low, high),
        to=_share(shown.prediction, low, high),
        every=every,
        drawing=looks.drawings[k] if isinstance(looks, Features) and looks.drawings else None,
        maps=_maps(explanation, k, looks),
    )


def _maps(explanation: Explanation, k: int, looks: Instances) -> tuple[MapImage, ...]:
    """Return a map of every file of set k, if the places of its instances are known."""
    if not isinstance(looks, Features) or looks.places is None:
        return ()
    own = explanation.span(k)
    places = looks.places.take(np.arange(own.start, own.stop))
    return tuple(map_image(one) for one in maps_of(explanation.subset([k]), places))


def _table(explanation: Explanation, looks: Instances) -> tuple[Any, tuple[str, ...]]:
    """Return the features shown as columns, for all instances."""
    if isinstance(looks, Texts | Images):
        return np.zeros((len(looks), 0)), ()
    assert isinstance(looks, Features)
    chosen = looks.most_correlated(explanation.values, MOST_COLUMNS)
    return looks.table[:, chosen], tuple(looks.columns[c] for c in chosen)


def _ranks(shown: SetRows, table: Any) -> Any:
    """Return the place of every row if sorted as read, by value, by each column; largest first."""
    keys = [-np.arange(len(shown.rows)), np.array([r.value for r in shown.rows]), *table.T]
    return np.array([np.argsort(np.argsort(-np.asarray(key), kind="stable")) for key in keys])


def _scaled(row: Row, origin: float, low: float, high: float) -> dict[str, float | None]:
    """Return start, length and marks of a bar in per cent."""
    end = origin + row.value
    whisker = row.whisker
    return {
        "at": _share(min(origin, end), low, high),
        "long": _share(max(origin, end), low, high) - _share(min(origin, end), low, high),
        "from": None if whisker is None else _share(end - whisker, low, high),
        "wide": None if whisker is None else 100 * 2 * whisker / (high - low),
        "expected": None if row.expected is None else _share(origin + row.expected, low, high),
    }


def _widened(low: float, high: float) -> tuple[float, float]:
    """Widen a range a little at both ends; it is never empty."""
    room = 0.02 * (high - low) or 0.5
    return low - room, high + room


def _share(value: float, low: float, high: float) -> float:
    return 100 * (value - low) / (high - low)
