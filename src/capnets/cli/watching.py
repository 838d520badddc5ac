"""What is seen while the paper's runs are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from capnets.cli.printing import console

if TYPE_CHECKING:
    from rich.console import Group

    from capnets.paper.plan import Plan
    from capnets.paper.results import Record
    from capnets.paper.runner import Outcome, Watch

__all__ = ["watching"]


@contextmanager
def watching(plan: Plan, folder: Path, *, workers: int) -> Iterator[Watch]:
    """A live table of what is done, what is running, and the time left; lines in a log file."""
    from rich.live import Live

    from capnets.paper.estimate import Estimate
    from capnets.paper.results import Results
    from capnets.paper.workers import Done, Event

    there = Results(folder).read() if (folder / "results.json").exists() else {}
    estimate = Estimate(there.values())
    terminal = console(stderr=True)
    with Live(console=terminal, refresh_per_second=4, transient=True) as live:

        def watch(event: Event, outcome: Outcome) -> None:
            if isinstance(event, Done):
                estimate.see(event.record)
            left = _duration(estimate.left(outcome, workers=workers))
            if terminal.is_terminal:
                live.update(_picture(plan, outcome, left))
            elif isinstance(event, Done):
                done = f"{len(outcome.records)}/{len(plan.choices)}"
                print(
                    f"{done} {_line(event.record)}; time left {left}", file=sys.stderr, flush=True
                )

        yield watch


def _line(record: Record) -> str:
    choice = record.choice
    name = " ".join(str(getattr(choice, n)) for n in ("model", "task") if hasattr(choice, n))
    if record.failure:
        return f"{name}: {record.failure}"
    mse = record.under("shared").get("mse")
    return f"{name}" + (
        "" if mse is None else f": MSE {mse:.4g} ({record.cost['train_seconds']} s)"
    )


def _picture(plan: Plan, outcome: Outcome, left: str) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from capnets.paper.estimate import epochs_of

    tables = Table(box=None, pad_edge=False)
    for column in ("table", "done", "of"):
        tables.add_column(column, justify="left" if column == "table" else "right")
    for table, entries in plan.tables:
        keys = {choice.key for entry in entries for choice in entry.needed}
        done = sum(key in outcome.records for key in keys)
        style = "green" if done == len(keys) else ""
        tables.add_row(f"{table.number}: {table.title}", str(done), str(len(keys)), style=style)
    lines = [
        f"{getattr(r.choice, 'model', '')} {getattr(r.choice, 'task', '')} "
        f"seed {getattr(r.choice, 'seed', '-')}: epoch {r.epoch}/{epochs_of(r.choice)}"
        for r in outcome.running.values()
    ]
    total = f"{len(outcome.records)} of {len(plan.choices)} runs, time left {left}"
    return Group(tables, *[Text(line, style="dim") for line in lines], Text(total, style="bold"))


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "not known yet"
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"
