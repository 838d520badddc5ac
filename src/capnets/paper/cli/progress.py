"""Show the progress of `capnets reproduce`."""

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
    from capnets.paper.scheduler import Outcome, Running, Watch

__all__ = ["watching"]


@contextmanager
def watching(plan: Plan, folder: Path) -> Iterator[Watch]:
    """Show a live table of jobs and the time left; in a log file, print a line per job."""
    from rich.live import Live

    from capnets.paper.estimate import Estimate
    from capnets.paper.pool import Event, JobDone
    from capnets.paper.results import Results

    there = Results(folder).read() if (folder / "results.json").exists() else {}
    estimate = Estimate(there.values())
    terminal = console(stderr=True)
    begun = False
    with Live(console=terminal, refresh_per_second=4, transient=True) as live:

        def watch(event: Event | None, outcome: Outcome) -> None:
            nonlocal begun
            if isinstance(event, JobDone):
                estimate.see(event.record)
            left = _duration(estimate.left(outcome))
            if terminal.is_terminal:
                live.update(_picture(plan, outcome, left), refresh=not begun)
            elif isinstance(event, JobDone):
                done = f"{len(outcome.records)}/{len(plan.jobs)}"
                _say(f"{done} {_line(event.record)}; time left {left}")
            elif not begun:
                _say(f"{_total(plan, outcome)}; time left {left}")
            begun = True

        yield watch


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _line(record: Record) -> str:
    job = record.job
    name = " ".join(str(getattr(job, n)) for n in ("model", "task") if hasattr(job, n))
    if record.failure:
        return f"{name}: {record.failure}"
    mse = record.under("shared").get("mse")
    return f"{name}" + (
        "" if mse is None else f": MSE {mse:.4g} ({record.cost['train_seconds']} s)"
    )


def _picture(plan: Plan, outcome: Outcome, left: str) -> Group:
    """Draw the table; finished tables come last, where a small terminal cuts off."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    total = Text(f"{_total(plan, outcome)}, time left {left}", style="bold")
    running = [Text(_running(one), style="dim") for one in outcome.running.values()]
    rows = []
    for table, entries in plan.tables:
        keys = {job.key for entry in entries for job in entry.needed}
        rows.append((table, sum(key in outcome.records for key in keys), len(keys)))
    tables = Table(box=None, pad_edge=False)
    tables.add_column("table", no_wrap=True)
    for column in ("done", "of"):
        tables.add_column(column, justify="right")
    for table, done, of in sorted(rows, key=lambda row: row[1] == row[2]):
        style = "green" if done == of else ""
        tables.add_row(f"{table.number}: {table.title}", str(done), str(of), style=style)
    return Group(total, *running, tables)


def _total(plan: Plan, outcome: Outcome) -> str:
    return f"{len(outcome.records)} of {len(plan.jobs)} runs done"


def _running(one: Running) -> str:
    from capnets.paper.estimate import epochs_of

    names = [str(getattr(one.job, n)) for n in ("model", "task") if hasattr(one.job, n)]
    if epochs := epochs_of(one.job):
        names.append(f"seed {getattr(one.job, 'seed', '-')}: epoch {one.epoch}/{epochs}")
    return " ".join(names)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "not known yet"
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"
