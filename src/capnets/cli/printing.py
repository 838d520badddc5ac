"""Output of commands: tables for people, JSON for programs, progress bars."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from capnets.progress import TitledProgress

__all__ = [
    "console",
    "epochs",
    "loading",
    "print_json",
    "print_measures",
    "print_table",
    "stopping",
]

MEASURES = {
    "MSE": "mse", "MAE": "mae", "R²": "r2", "accuracy": "accuracy",
    "error of added values": "added_value_error",
}  # fmt: skip


def console(*, stderr: bool = False) -> Any:
    """Return a console; it prints plain text into files and pipes."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table; columns of numbers are aligned to the right."""
    from rich import box
    from rich.table import Table

    rows = [list(row) for row in rows]
    if title:
        console().print(f"\n{title}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        numeric = all(isinstance(row[number], int | float) or row[number] is None for row in rows)
        table.add_column(name, justify="right" if rows and numeric else "left")
    for row in rows:
        table.add_row(*[_text(value) for value in row])
    console().print(table)


def print_measures(parts: dict[str, dict[str, float]]) -> None:
    """Print a table of measures on some parts of a task.

    Reviews have no exact added values, and their ratings are not whole numbers.
    """
    known = all("added_value_error" in measured for measured in parts.values())
    shown = [label for label in MEASURES if known or label in ("MSE", "MAE", "R²")]
    print_table(
        ["test sets", *shown],
        [(name, *(measured.get(MEASURES[k]) for k in shown)) for name, measured in parts.items()],
    )


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.4g}"
    return f"{value:.6g}" if text == "1" else text  # R² is hardly ever exactly 1


@contextmanager
def epochs(
    title: str, total: int | None, *, members: int = 1, quiet: bool = False
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Show the progress of a training on standard error: a bar, or lines in a log file.

    Members of an average are trained one after another, each for `total` epochs.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[error]}"),
        TimeRemainingColumn(),
    )
    terminal = console(stderr=True)
    lines = not quiet and not terminal.is_terminal
    with Progress(*columns, console=terminal, disable=quiet or lines) as bar:
        task = bar.add_task(
            title, total=None if total is None else total * members, done="", error=""
        )

        def show(line: Mapping[str, Any]) -> None:
            # With few sets none is held out, and only the training loss is known.
            held_out = line["valid"] is not None
            error = (
                f"validation error {line['valid']:.4g}"
                if held_out
                else f"training loss {line['train']:.4g}"
            )
            last = int(line.get("epochs") or total or 1)
            member = line.get("member", 0) if members > 1 else 0
            of = f"network {member + 1} of {members}, " if members > 1 else ""
            done = f"{of}epoch {line['epoch']}/{last}"
            completed = member * last + line["epoch"]
            bar.update(task, completed=completed, total=last * members, done=done, error=error)
            if lines and completed % max(1, last * members // 10) == 0:
                typer.echo(f"{title}: {done}, {error}", err=True)

        yield show


@contextmanager
def loading() -> Iterator[TitledProgress]:
    """Show the progress of a preparation on standard error: a transient bar, or some lines."""
    from rich.progress import Progress

    terminal = console(stderr=True)
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        tasks: dict[str, Any] = {}
        tenths: dict[str, int] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)
            tenth = 10 * done // max(1, total)
            if not terminal.is_terminal and tenth != tenths.get(what):
                tenths[what] = tenth
                typer.echo(f"{what}: {done:,} of {total:,}", err=True)

        yield show


@contextmanager
def stopping(*, quiet: bool = False) -> Iterator[None]:
    """Print how to continue when a training is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if not quiet:
            typer.echo(
                "Stopped. The same command with --resume continues after the last finished epoch.",
                err=True,
            )
        raise typer.Exit(130) from None
