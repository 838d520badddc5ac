"""Print an explained set as a table in the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capnets.explain.explanation import Explanation
from capnets.explain.render.instances import Features, Instances, Texts, checked, words_of
from capnets.explain.render.rows import LARGE, Row, SetRows, number, rows_of

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["terminal_table"]

WIDTH = 14
#: Number of rows shown of a large set.
FEW = 20
EIGHTHS = " ▏▎▍▌▋▊▉█"


def terminal_table(
    explanation: Explanation, k: int, *, instances: Instances | None = None
) -> Table:
    """Return set k as a table: instance, value with error, expected value, running sum.

    Bars of negative values differ in character as well as in colour, so that either suffices.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    shown = rows_of(explanation, k)
    shown_instances = checked(instances, explanation)
    start = explanation.span(k).start
    every = len(shown.rows)
    whole = every <= LARGE
    title = escape(_title(shown))
    if not whole:
        rows = shown.extremes(FEW).rows
        shown = replace(shown, rows=tuple(sorted(rows, key=lambda row: -row.value)))
        title += f". The {FEW} of {every:,} instances with the highest and the lowest values"
    placed = isinstance(shown_instances, Features) and shown_instances.places is not None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    words = words_of(explanation, shown_instances)
    named = isinstance(shown_instances, Texts) or shown_instances.names is not None
    named |= isinstance(shown_instances, Features) and bool(shown_instances.columns)
    known = {
        "error": explanation.errors is not None,
        "over orders": explanation.spreads is not None,
        "expected": explanation.expected is not None,
    }
    if not placed:
        table.add_column("", justify="right", no_wrap=True)
    if named:
        table.add_column("instance", max_width=48)
    table.add_column("value", justify="right", no_wrap=True)
    for name in [name for name, there in known.items() if there]:
        table.add_column(name, justify="right", style="dim")
    if whole:
        table.add_column("sum", justify="right", no_wrap=True)
    table.add_column("", min_width=WIDTH, no_wrap=True)
    places = shown.decimals
    longest = max((abs(row.value) for row in shown.rows), default=0.0)
    for row in shown.rows:
        cells = [] if placed else [str(row.position + 1)]
        cells += [escape(words[start + row.position])] if named else []
        cells.append(number(row.value, places))
        cells += [f"±{number(row.error, places + (places < 3))}"] if row.error is not None else []
        cells += [f"±{number(row.spread, places)}"] if row.spread is not None else []
        cells += [number(row.expected, places)] if row.expected is not None else []
        cells += [number(row.end, places)] if whole else []
        table.add_row(*cells, _bar(row, longest))
    return table


def _title(shown: SetRows) -> str:
    text = f"Set {shown.name}: {shown.caption}"
    if shown.spread is not None:
        text += f", ±{number(shown.spread, shown.decimals)} over orders"
    if shown.baseline or shown.covariates is not None:
        text += f", from {shown.baseline_words}"
    return text


def _bar(row: Row, longest: float) -> str:
    share = abs(row.value) / longest if longest else 0.0
    if row.value < 0:
        return f"[dark_orange]{'░' * max(1, round(share * WIDTH))}[/]"
    whole, part = divmod(round(share * WIDTH * 8), 8)
    return f"[dodger_blue2]{'█' * whole}{EIGHTHS[part].strip()}[/]"
