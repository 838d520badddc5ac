"""`capnets tune`: look for good settings on a file of sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.files import (
    Categories,
    Classify,
    Features,
    Group,
    Missing,
    Order,
    SetColumn,
    Target,
    Text,
    Weight,
    columns,
)
from capnets.cli.printing import console
from capnets.cli.train_file import kind_of, print_quality

__all__ = ["add_to", "tune"]


def tune(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Parquet, CSV, TSV, Feather or .npz.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the study and the run go.")],
    trials: Annotated[
        int,
        typer.Option(
            help="How many, in all. With more than before it goes on, and replaces OUT/run "
            "if it finds something better."
        ),
    ] = 30,
    workers: Annotated[int, typer.Option(help="Processes at the same time.")] = 1,
    storage: Annotated[
        str | None,
        typer.Option(help="An Optuna storage URL that many machines reach; else SQLite in OUT."),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(help="Its name in the storage; else one made from data and settings."),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A network to try; repeat.")
    ] = None,
    set_column: SetColumn = None,
    target: Target = None,
    features: Features = None,
    categories: Categories = None,
    order_column: Order = None,
    group_column: Group = None,
    weight_column: Weight = None,
    text_column: Text = None,
    missing: Missing = "refuse",
    classify: Classify = False,
    seed: Annotated[int, typer.Option(help="Of folds, start weights and orders.")] = 0,
) -> None:
    """Search by cross-validation and train the best; stop it and call it again to go on."""
    from rich.progress import Progress

    from capnets.tune import Space
    from capnets.tune import tune as search

    meaning = columns(
        context, file, set_column, target, features=features, categories=categories,
        order=order_column, group=group_column, weight=weight_column, missing=missing,
        text=text_column,
    )  # fmt: skip
    estimator = kind_of(file, meaning, classify=classify)(columns=meaning, random_state=seed)
    space = Space(models=tuple(models)) if models else Space()
    with Progress(console=console(stderr=True)) as bar:
        task = bar.add_task("trials", total=trials)
        run = search(
            out, file, estimator, trials=trials, space=space, storage=storage, study=study,
            workers=workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    print_quality(run)
    typer.echo(f"All trials: {out / 'trials.html'}. The best is a run: {run.folder}")


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(tune)
