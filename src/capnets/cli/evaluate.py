"""`capnets evaluate`: measure a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, print_json, print_table
from capnets.cli.task import evaluate_task

__all__ = ["add_to", "evaluate"]


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[str | None, typer.Argument(help="Labelled sets, for a run on a file.")] = None,
    as_json: Json = False,
) -> None:
    """Measure a run on the sets of a file, or on the test sets of its task.

    `capnets task evaluate` draws other sets of the task.
    """
    if file is None:
        evaluate_task(run, as_json=as_json)
        return
    from capnets.estimators.runs import evaluate_run

    measured = evaluate_run(run, file)
    if as_json:
        print_json(measured)
    else:
        print_table(["measure", "value"], list(measured.items()))


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(evaluate)
