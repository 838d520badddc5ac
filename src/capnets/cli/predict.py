"""`capnets predict`: predictions and added values of a file, one row per instance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, Json, grouped
from capnets.cli.printing import console, print_json

__all__ = ["predict"]


@grouped
def predict(
    run: Annotated[Path, typer.Argument(help="A run that was trained on a file.")],
    file: Annotated[
        str, typer.Argument(help="Parquet, CSV, TSV, Feather, .npz, or a folder of features.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: .parquet or .csv.")],
    folders: FolderOptions,
    features: FeatureFiles = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Number of CPU threads.")] = 1,
    as_json: Json = False,
) -> None:
    """Write predictions and added values; memory grows by 50 bytes per row.

    Columns: set (for documents: the row of the document), row (in FILE, from 0),
    sentence (if FILE has a text column), prediction (of the set), added_value.
    Added values of a set sum to its prediction minus the baseline (column of its own).

    For classes: a probability_NAME of each; added_value_NAME sums to the logit of
    that class (of two classes, of the second).

    With several targets every column has the name of one.
    """
    import torch
    from rich.progress import Progress

    from capnets.estimators.predicting import predict_table
    from capnets.estimators.runs import load_estimator

    torch.set_num_threads(threads)
    estimator = load_estimator(run)
    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("predicting sets", total=None)
        sets = predict_table(
            estimator, folders.of(file, features), out, force=force,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if as_json:
        print_json({"run": str(run), "out": str(out), "sets": sets})
        return
    typer.echo(f"Sets predicted: {sets:,}. {out} has one row per instance, with its added value.")
