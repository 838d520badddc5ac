"""An explained set as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capnets.explain.explanation import Explanation
from capnets.explain.render.looks import Features, Look, Texts, checked
from capnets.explain.render.rows import Row, SetRows, number, rows_of

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["terminal_table"]

WIDTH = 14
#: Features that are shown of every instance: those that go along with the values most closely.
MOST = 3
EIGHTHS = " ▏▎▍▌▋▊▉█"


def terminal_table(explanation: Explanation, k: int, *, look: Look | None = None) -> Table:
    """Set k as a table: what each instance is, its value with error, expected value, running sum.

    Of instances that are rows of a table the few features that tell most are shown.

    Bars of values below zero are drawn with another character as well as another colour, so that
    they can be told apart without either.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    shown = rows_of(explanation, k)
    looks = checked(look, explanation)
    start = explanation.stretch(k).start
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=escape(_title(shown)), title_justify="left"
    )
    telling = looks.telling(explanation.values, MOST) if isinstance(looks, Features) else []
    named = bool(telling) or isinstance(looks, Texts) or looks.names is not None
    known = {
        "error": explanation.errors is not None,
        "over orders": explanation.spreads is not None,
        "expected": explanation.expected is not None,
    }
    table.add_column("", justify="right")
    if named:
        table.add_column("instance", max_width=48)
    table.add_column("value", justify="right", no_wrap=True)
    for name in [name for name, there in known.items() if there]:
        table.add_column(name, justify="right", style="dim")
    table.add_column("sum", justify="right", no_wrap=True)
    table.add_column("", min_width=WIDTH, no_wrap=True)
    places = shown.decimals
    longest = max((abs(row.value) for row in shown.rows), default=0.0)
    for row in shown.rows:
        cells = [str(row.position + 1)]
        cells += [escape(_words(looks, start + row.position, telling))] if named else []
        cells.append(number(row.value, places))
        cells += [f"±{number(row.error, min(places + 1, 3))}"] if row.error is not None else []
        cells += [f"±{number(row.spread, places)}"] if row.spread is not None else []
        cells += [number(row.expected, places)] if row.expected is not None else []
        table.add_row(*cells, number(row.end, places), _bar(row, longest))
    return table


def _words(look: Look, i: int, telling: list[int]) -> str:
    """What instance i is: its name, and the features that tell most."""
    if not isinstance(look, Features) or not telling:
        return look.label(i)
    features = ", ".join(filter(None, (look.feature(i, column) for column in telling)))
    return f"{look.label(i)}: {features}"


def _title(shown: SetRows) -> str:
    parts = [f"Set {shown.name}: predicted {number(shown.prediction)}"]
    if shown.spread is not None:
        parts[0] += f" (±{number(shown.spread, shown.decimals)} over orders)"
    if shown.label is not None:
        parts.append(f"label {number(shown.label)}")
    return ", ".join(parts)


def _bar(row: Row, longest: float) -> str:
    share = abs(row.value) / longest if longest else 0.0
    if row.value < 0:
        return f"[dark_orange]{'░' * max(1, round(share * WIDTH))}[/]"
    whole, part = divmod(round(share * WIDTH * 8), 8)
    return f"[dodger_blue2]{'█' * whole}{EIGHTHS[part].strip()}[/]"
