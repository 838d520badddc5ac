"""`capnets evaluate`: measure a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, Json, grouped
from capnets.cli.printing import print_json, print_table
from capnets.cli.task import evaluate_task
from capnets.errors import InputError

__all__ = ["evaluate"]


@grouped
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    folders: FolderOptions,
    file: Annotated[str | None, typer.Argument(help="Labelled sets, for a run on a file.")] = None,
    features: FeatureFiles = None,
    include_training: Annotated[
        bool, typer.Option("--include-training", help="Also measure sets that were trained on.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="For survival: write Kaplan-Meier curves by predicted risk.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a run on the sets of a file, or on the test sets of its task.

    Sets of the file that the run was trained on are left out.
    `capnets task evaluate` draws other sets of the task.
    """
    if file is None:
        if html is not None:
            raise InputError("--html needs a file of sets with times and events")
        evaluate_task(run, as_json=as_json)
        return
    from capnets.estimators.runs import evaluate_run, risk_groups
    from capnets.files import write_text

    data = folders.of(file, features)
    if html is not None:
        groups = risk_groups(run, data, include_training=include_training)
        write_text(html, groups.to_html(source=f"{run} on {file}"))
    measured = evaluate_run(run, data, include_training=include_training)
    if as_json:
        print_json(measured)
        return
    sets, seen = measured.pop("sets"), measured.pop("trained_on")
    print_table(["measure", "value"], list(measured.items()))
    if "mse" in measured and "r2" not in measured:
        typer.echo("R² is not defined for a single set.")
    left_out = "included" if include_training else "left out"
    typer.echo(f"{sets:,} sets measured; {seen:,} sets of the file were trained on ({left_out}).")
