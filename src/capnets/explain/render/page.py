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
from capnets.sets import Array

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
        columns=len(_columns(explanation, looks)),
        meaning=explanation.meaning,
        unit=explanation.unit,
        baseline=baseline or None,
        sets=sets,
        named="" if isinstance(looks, Texts) else _heading(looks.names),
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
    columns = _columns(explanation, looks)
    every = len(shown.rows)
    if isinstance(looks, Features):
        shown = shown.extremes(FEW)
    places = np.array([start + row.position for row in shown.rows], dtype=np.int64)
    ranks = _ranks(shown, [column.numbers[places] for column in columns])
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
                cells=tuple(column.text(place) for column in columns),
                sorting=";".join(f"--o{c}:{int(r)}" for c, r in enumerate(ranks[:, n])),
            )
        )
    return Drawn(
        shown=shown,
        instances=tuple(instances),
        columns=tuple(column.name for column in columns),
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


@dataclass(frozen=True, eq=False)
class Column:
    """A feature of all instances: numbers, or the place of each instance's category from 1."""

    name: str
    numbers: Array
    categories: tuple[str, ...] = ()

    def text(self, place: int) -> str:
        """Return the feature of an instance as text."""
        value = self.numbers[place]
        if not self.categories:
            return number(float(value))
        return self.categories[int(value) - 1] if value else "–"


def _columns(explanation: Explanation, looks: Instances) -> list[Column]:
    """Return the features shown as columns; indicators of a category are one column."""
    if not isinstance(looks, Features):
        return []
    chosen = looks.most_related(explanation.values, MOST_COLUMNS)
    by_source: dict[str, list[int]] = {}
    for c in chosen:
        name, _, category = looks.columns[c].partition("=")
        by_source.setdefault(name if category else looks.columns[c], []).append(c)
    found = []
    for name, own in by_source.items():
        part = looks.table[:, own]
        categories = tuple(looks.columns[c].partition("=")[2] for c in own)
        if all(categories) and np.isin(part, (0, 1)).all() and (part.sum(1) <= 1).all():
            found.append(Column(name, part @ np.arange(1, len(own) + 1), categories))
        else:
            found += [Column(looks.columns[c], looks.table[:, c]) for c in own]
    return found[:MOST_COLUMNS]


def _heading(names: tuple[str, ...] | None) -> str:
    """Return the heading of the names of instances: those of a table may be numbers of rows."""
    if names is None:
        return ""
    return "row" if all(name.isdecimal() for name in names) else "name"


def _ranks(shown: SetRows, columns: list[Array]) -> Any:
    """Return the place of every row if sorted as read, by value, by each column; largest first."""
    keys = [-np.arange(len(shown.rows)), np.array([r.value for r in shown.rows]), *columns]
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
