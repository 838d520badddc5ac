"""`capnets train`: a network on a set task or on a file of sets, into a run folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

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
    is_file,
    refuse,
)
from capnets.cli.printing import Json, epochs, print_json, print_table, stopping
from capnets.cli.train_file import file_recipe, train_file
from capnets.errors import InputError

__all__ = ["add_to", "train"]

FOR_TASKS = (
    "size", "sets", "valid_sets", "test_sets", "embedding", "upper_bound", "prior_weight",
    "devices",
)  # fmt: skip
FOR_FILES = (
    "set_column", "target", "features", "categories", "order_column", "group_column",
    "weight_column", "text_column", "missing", "classify", "test_share", "members",
)  # fmt: skip


def train(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A task (US, …), or a file of instances.")],
    model: Annotated[
        str, typer.Option("--model", "-m", help="A name from `capnets models`.")
    ] = "c-gru",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The run folder. [default: runs/TASK-MODEL-SEED]"),
    ] = None,
    size: Annotated[
        str, typer.Option(help="Instances per set: 10, or 5,10,20, or varying.")
    ] = "10",
    sets: Annotated[int, typer.Option(help="Sets to train on.")] = 100_000,
    valid_sets: Annotated[int, typer.Option(help="Sets to choose the best epoch by.")] = 10_000,
    test_sets: Annotated[int, typer.Option(help="Sets to measure the result on.")] = 10_000,
    embedding: Annotated[str | None, typer.Option(help="How images become features.")] = None,
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
    test_share: Annotated[
        float, typer.Option(help="Of a file's sets: kept to measure the result.")
    ] = 0.2,
    hidden: Annotated[
        int | None,
        typer.Option(min=1, help="Hidden dimensions. [default: 32; for files by their size]"),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(min=1, help="Layers of the encoder. [default: 3; for files by their size]"),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(min=1, help="For files: networks to average. [default: by their size]"),
    ] = None,
    activation: Annotated[
        str | None,
        typer.Option(
            help="Of added values: abs, identity, softplus. [default: abs; for files identity]"
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="fast, small, or paper (as published). [default: fast; for files by their size]"
        ),
    ] = None,
    n_epochs: Annotated[
        int | None, typer.Option("--epochs", help="[default: the recipe's]")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="[default: the recipe's]")] = None,
    learning_rate: Annotated[
        str | None,
        typer.Option(help="A number, or find: look for a good one. [default: the recipe's]"),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a gain.")
    ] = None,
    fixed_order: Annotated[
        bool, typer.Option("--fixed-order", help="Do not reorder instances every epoch.")
    ] = False,
    upper_bound: Annotated[
        float | None, typer.Option(help="Prior: no added value exceeds this.")
    ] = None,
    prior_weight: Annotated[float, typer.Option(help="Weight of the prior.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of start weights, orders and sets.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the network's arithmetic.")] = 1,
    devices: Annotated[
        int, typer.Option(min=1, help="GPUs (or processes) that share every batch.")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a run that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Train a network on a task or a file; stop it at any time and go on with --resume."""
    import torch

    torch.set_num_threads(threads)
    changes: dict[str, Any] = {"batch_size": batch_size, "patience": patience}
    changes = {name: value for name, value in changes.items() if value is not None}
    if learning_rate is not None:  # None in a recipe: look for one
        changes["learning_rate"] = None if learning_rate == "find" else _number(learning_rate)
    if is_file(source):
        refuse(context, FOR_TASKS, "for tasks only, not for a file")
        train_file(
            source,
            columns=columns(
                source, set_column, target, features=features, categories=categories,
                order=order_column, group=group_column, weight=weight_column, missing=missing,
                text=text_column,
            ),
            settings={
                "model": model, "hidden": hidden, "layers": layers, "members": members,
                "activation": activation or "identity", "epochs": n_epochs, "random_state": seed,
                **file_recipe(recipe, changes, fixed_order=fixed_order),
            },
            out=out, test_share=test_share, classify=classify, as_json=as_json,
            how={"resume": resume, "force": force},
        )  # fmt: skip
        return
    refuse(context, FOR_FILES, "for files only, not for a task")
    from capnets.experiment import train_task
    from capnets.models import ModelSpec
    from capnets.tasks import parse_task
    from capnets.training.fit import make_fabric
    from capnets.training.priors import UpperBound
    from capnets.training.recipe import recipe as find_recipe

    task = parse_task(
        source, embedding=embedding, sizes=size, sets=sets,
        valid_sets=valid_sets, test_sets=test_sets, seed=seed,
    )  # fmt: skip
    pictures = task.embedding == "none" and task.source != "digits"
    network = ModelSpec(
        model, hidden=hidden or 32, layers=layers or 3, activation=activation or "abs",
        inputs="pictures" if pictures else "none",
    )  # fmt: skip
    how = replace(
        find_recipe(recipe or "fast", epochs=n_epochs, reshuffle=False if fixed_order else None),
        **changes,
    )
    priors = [] if upper_bound is None else [UpperBound(weight=prior_weight, bound=upper_bound)]
    folder = out or Path("runs") / f"{task.name.replace(':', '-')}-{model}-{seed}"
    # What starts the other processes would choose a number of threads, were there none here.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    fabric = make_fabric(devices)
    first = fabric.is_global_zero
    title = f"{model} on {task.name}"
    with stopping(quiet=not first), epochs(title, how.epochs, quiet=as_json or not first) as show:
        run = train_task(
            folder, task, network, recipe=how, seed=seed, priors=priors,
            resume=resume, force=force, progress=show, fabric=fabric,
        )  # fmt: skip
    if not first:
        return
    if as_json:
        print_json({"run": str(run.folder), **run.metrics})
        return
    print_table(
        ["test sets", "MSE", "MAE", "R²", "accuracy", "error of added values"],
        [
            (name, m["mse"], m["mae"], m["r2"], m["accuracy"], m["added_value_error"])
            for name, m in run.metrics.items()
            if name in ("shared", "held-out")
        ],
    )
    typer.echo(f"The run is in {run.folder} ({run.metrics['train_seconds']} s of training).")
    typer.echo(f"See what each instance added: capnets explain {run.folder}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a learning rate is a number or 'find', not {text!r}") from None


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(train)
