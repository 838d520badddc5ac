"""`capnets tune`: search for good settings on a file of sets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import ColumnOptions
from capnets.cli.options import DataFile, grouped
from capnets.cli.printing import console
from capnets.cli.train import print_quality

__all__ = ["tune"]


@grouped
def tune(
    file: DataFile,
    columns: ColumnOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the study and of the best run.")
    ],
    trials: Annotated[
        int,
        typer.Option(
            help="Number of trials in all. A larger number continues the search and replaces "
            "OUT/run if a better trial is found."
        ),
    ] = 30,
    workers: Annotated[int, typer.Option(help="Number of parallel processes.")] = 1,
    storage: Annotated[
        str | None,
        typer.Option(help="Optuna storage URL that many machines reach.", show_default="SQLite"),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(help="Name of the study in the storage.", show_default="from the data"),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Network to try; repeatable.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed of trials, folds, initial weights and orders.")
    ] = 0,
) -> None:
    """Search for settings by cross-validation and train the best; call it again to continue."""
    from rich.progress import Progress

    from capnets.estimators.problems import file_problem
    from capnets.estimators.runs import ESTIMATORS
    from capnets.tune import Space
    from capnets.tune import tune as search

    meaning = columns.of(file)
    with tempfile.TemporaryDirectory() as scratch:
        problem, note = file_problem(
            file, meaning, classify=columns.classify, survival=columns.survival,
            folder=Path(scratch) / "s",
        )  # fmt: skip
    typer.echo(note, err=True)
    kind = ESTIMATORS[problem.target.to_data()["estimator"]]
    estimator = kind(columns=meaning, random_state=seed)
    space = Space(models=tuple(models)) if models else Space()
    with Progress(console=console(stderr=True)) as bar:
        task = bar.add_task("trials", total=trials)
        run = search(
            out, file, estimator, trials=trials, space=space, storage=storage, study=study,
            workers=workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    print_quality(run)
    typer.echo(f"All trials: {out / 'trials.html'}. The best run: {run.folder}")
