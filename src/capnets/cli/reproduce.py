"""`capnets reproduce`: the paper's tables and figures, run by run, into a results folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capnets.cli.printing import console, print_table

if TYPE_CHECKING:
    from capnets.paper.plan import Plan
    from capnets.paper.runner import Outcome, Watch

__all__ = ["add_to", "reproduce"]


def reproduce(
    tables: Annotated[list[str] | None, typer.Argument(help="table1, figure2, main, all, …; none: list them.")] = None,
    scale: Annotated[str, typer.Option(help="smoke, small or full (the paper's sizes).")] = "full",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Local processes, one thread each.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="A Dask scheduler to use instead: tcp://…")] = None,
    results: Annotated[Path | None, typer.Option("--results", "-o", help="The results folder. [default: results/SCALE]")] = None,
    models: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    seeds: Annotated[str | None, typer.Option(help="These instead of the scale's: 0,1,2.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do again what failed.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what there is to do.")] = False,
) -> None:  # fmt: skip
    """Run what stands behind the paper's tables; stop at any time, the same command goes on."""
    from capnets.errors import InputError
    from capnets.paper.plan import make_plan

    if not tables:
        _list_tables()
        return
    try:
        numbers = None if seeds is None else [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(f"seeds are numbers with commas between, not {seeds!r}") from None
    plan = make_plan(tables, scale=scale, models=_names(models), tasks=_names(tasks), seeds=numbers)
    folder = results or Path("results") / scale
    if dry:
        _say_plan(plan, folder)
        return
    from capnets.paper.runner import reproduce as run

    with _progress(plan, folder, workers=jobs) as watch:
        try:
            outcome = run(plan, folder, jobs=jobs, cluster=cluster, retry=retry, watch=watch)
        except KeyboardInterrupt:
            typer.echo(
                f"Stopped. What was finished is in {folder}; the same command goes on.", err=True
            )
            raise typer.Exit(130) from None
    _say_outcome(outcome, folder)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _list_tables() -> None:
    from capnets.paper.tables import GROUPS, TABLES

    print_table(
        ["table", "in the paper", "what it shows"],
        [(t.name, t.number, t.shows) for t in TABLES.values()],
    )
    typer.echo("Several at once: " + "; ".join(f"{g} ({', '.join(t)})" for g, t in GROUPS.items()))


def _say_plan(plan: Plan, folder: Path) -> None:
    from capnets.paper.results import Results

    there = Results(folder).read() if (folder / "results.json").exists() else {}
    print_table(
        ["table", "in the paper", "entries", "runs", "done"],
        [
            (t.name, t.number, len(entries), len(keys), sum(key in there for key in keys))
            for t, entries in plan.tables
            for keys in [{c.key for entry in entries for c in entry.needed}]
        ],
    )
    done = sum(key in there for key in plan.choices)
    typer.echo(f"{len(plan.choices)} runs in all, {done} done.")


def _say_outcome(outcome: Outcome, folder: Path) -> None:
    failed = [record for record in outcome.records.values() if record.failure]
    typer.echo(f"{len(outcome.records)} done, in {folder}.")
    if failed:
        print_table(
            ["failed", "task", "why"],
            [
                (getattr(r.choice, "model", "-"), getattr(r.choice, "task", "-"), r.failure)
                for r in failed
            ],
        )
    for reason in sorted(set(outcome.wrong.values())):
        count = sum(reason == other for other in outcome.wrong.values())
        typer.secho(f"{count} not done: {reason}", fg="red", err=True)
    typer.echo(f"See them beside the paper's: capnets report {folder}")
    if outcome.wrong:
        raise typer.Exit(1)


@contextmanager
def _progress(plan: Plan, folder: Path, *, workers: int) -> Iterator[Watch]:
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
                print(f"{done} {_line(event)}; time left {left}", file=sys.stderr, flush=True)

        yield watch


def _line(event: object) -> str:
    from capnets.paper.workers import Done

    assert isinstance(event, Done)
    record, choice = event.record, event.record.choice
    name = " ".join(str(getattr(choice, n)) for n in ("model", "task") if hasattr(choice, n))
    if record.failure:
        return f"{name}: {record.failure}"
    mse = record.under("shared").get("mse")
    return f"{name}" + (
        "" if mse is None else f": MSE {mse:.4g} ({record.cost['train_seconds']} s)"
    )


def _picture(plan: Plan, outcome: Outcome, left: str) -> object:
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


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(reproduce)
