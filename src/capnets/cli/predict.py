"""`capnets predict`: predictions and added values of a file, one row per instance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, Json, grouped
from capnets.cli.printing import console, print_json
from capnets.errors import InputError

__all__ = ["predict"]

ENGINE = "Engine"


@dataclass(frozen=True)
class EngineOptions:
    """Prediction in many processes."""

    engine: Annotated[
        str | None,
        typer.Option(rich_help_panel=ENGINE, help="dask, ray or spark: predict in many processes."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(rich_help_panel=ENGINE, min=1, help="Local processes.", show_default="2"),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(rich_help_panel=ENGINE, help="Address of a running cluster of the engine."),
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=ENGINE, min=1, help="Parts of the data.", show_default="by its files"
        ),
    ] = None

    def check(self) -> None:
        """Refuse options that cannot have an effect."""
        if self.workers is not None and self.cluster is not None:
            raise InputError("--workers and --cluster: a cluster has workers; leave one out")
        given = {"workers": self.workers, "cluster": self.cluster, "partitions": self.partitions}
        if self.engine is None and (named := [f"--{k}" for k, v in given.items() if v is not None]):
            raise InputError(f"{', '.join(named)}: name an engine, e.g. --engine dask")


@grouped
def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run that was trained on a file.")],
    file: Annotated[
        str,
        typer.Argument(
            help="Parquet, CSV, TSV, Feather, .npz, or a folder of features; "
            "with --engine, Parquet files or an address."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The file to write: .parquet or .csv; with --engine, a folder."
        ),
    ],
    folders: FolderOptions,
    engines: EngineOptions,
    features: FeatureFiles = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what exists.")] = False,
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

    With --engine, OUT is a folder of Parquet files with the columns of FILE that are not features.
    """
    engines.check()
    if engines.engine is not None:
        _with_engine(run, file, out, engines, force=force)
        if as_json:
            print_json({"run": str(run), "out": out, "engine": engines.engine})
        else:
            typer.echo(f"{out} has one row per instance, with its added value.")
        return
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
    typer.echo(f"Sets predicted: {sets:,}. {out} has one row per instance, with its added value;")
    typer.echo("column 'row' is the row of the file, counted from 0.")


def _with_engine(run: Path, data: str, out: str, options: EngineOptions, *, force: bool) -> None:
    from capnets.batch import predict_dataset

    with console(stderr=True).status(f"predicting with {options.engine}"):
        predict_dataset(
            data, run, out, engine=options.engine or "", workers=options.workers or 2,
            cluster=options.cluster, partitions=options.partitions, force=force,
        )  # fmt: skip
