"""Explanations as one HTML file that needs nothing else: no script, no network, any width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from capnets.explain.explanation import Explanation
from capnets.explain.render.looks import Features, Look, Pictures, Texts, checked
from capnets.explain.render.rows import Row, SetRows, number, rows_of

__all__ = ["page"]

MOST_COLUMNS = 6
"""Most features shown per instance: those that go along with the values most closely."""


def page(
    explanation: Explanation,
    *,
    look: Look | None = None,
    title: str = "What each instance adds",
    about: str = "",
) -> str:
    """All sets of an explanation as an HTML page.

    Parameters
    ----------
    explanation
        What to show; `Explanation.subset` chooses sets.
    look
        What the instances look like, set after set as in the explanation.
    title
        The heading.
    about
        A line below it: where the network and the sets come from.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    looks = checked(look, explanation)
    environment = Environment(
        loader=PackageLoader("capnets.explain.render", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    sets = [_drawn(explanation, k, looks) for k in range(len(explanation))]
    return environment.get_template("page.html.j2").render(
        title=title,
        about=about,
        kind=type(looks).__name__.lower(),
        meaning=explanation.meaning,
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


@dataclass(frozen=True)
class Instance:
    """A row with everything the template has to place, in per cent of the width or height."""

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


def _drawn(explanation: Explanation, k: int, looks: Look) -> Drawn:
    shown = rows_of(explanation, k)
    start = explanation.stretch(k).start
    low, high = _widened(*shown.levels)
    bottom, top = _widened(*shown.heights)
    longest = max((abs(row.value) for row in shown.rows), default=0.0) or 1.0
    table, columns = _table(explanation, looks)
    places = np.array([start + row.position for row in shown.rows], dtype=np.int64)
    ranks = _ranks(shown, table[places])
    instances = []
    for n, (row, place) in enumerate(zip(shown.rows, places, strict=True)):
        instances.append(
            Instance(
                row=row,
                label=looks.label(int(place)),
                picture=looks.uri(int(place)) if isinstance(looks, Pictures) else None,
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
    )


def _table(explanation: Explanation, looks: Look) -> tuple[Any, tuple[str, ...]]:
    """The features worth a column, for all instances."""
    if isinstance(looks, Texts | Pictures):
        return np.zeros((len(looks), 0)), ()
    assert isinstance(looks, Features)
    chosen = looks.telling(explanation.values, MOST_COLUMNS)
    return looks.table[:, chosen], tuple(looks.columns[c] for c in chosen)


def _ranks(shown: SetRows, table: Any) -> Any:
    """The place of every row when sorted: as read, by value, by each column; largest first."""
    keys = [-np.arange(len(shown.rows)), np.array([r.value for r in shown.rows]), *table.T]
    return np.array([np.argsort(np.argsort(-np.asarray(key), kind="stable")) for key in keys])


def _scaled(row: Row, origin: float, low: float, high: float) -> dict[str, float | None]:
    """Where a bar begins, how long it is, and where its marks are, in per cent."""
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
    """A little room at both ends, and never an empty range."""
    room = 0.02 * (high - low) or 0.5
    return low - room, high + room


def _share(value: float, low: float, high: float) -> float:
    return 100 * (value - low) / (high - low)
