"""`capnets train`: a network on a task or on a file of sets, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.cli.files import (
    FOR_TABLES,
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
from capnets.cli.printing import Json
from capnets.cli.train_file import file_recipe, train_file
from capnets.cli.train_task import train_documents, train_images
from capnets.errors import InputError

if TYPE_CHECKING:
    from capnets.training.priors import Prior

__all__ = ["add_to", "train"]

FOR_IMAGES = ("size", "sets", "valid_sets", "test_sets")
FOR_TASKS = (*FOR_IMAGES, "embedding", "devices")
FOR_FILES = (*FOR_TABLES, "classify", "test_share", "members")


def train(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(help="A task (US, sentiment, …), or a file of instances.")
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", help="A name from `capnets models`.")
    ] = "c-gru",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The run folder.", show_default="runs/TASK-MODEL-SEED"),
    ] = None,
    size: Annotated[
        str, typer.Option(help="For images: instances per set: 10, or 5,10,20, or varying.")
    ] = "10",
    sets: Annotated[int, typer.Option(help="For images: sets to train on.")] = 100_000,
    valid_sets: Annotated[
        int, typer.Option(help="For images: sets to choose the best epoch by.")
    ] = 10_000,
    test_sets: Annotated[
        int, typer.Option(help="For images: sets to measure the result on.")
    ] = 10_000,
    embedding: Annotated[
        str | None, typer.Option(help="How images or sentences become features.")
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
    test_share: Annotated[
        float, typer.Option(help="Of a file's sets: kept to measure the result.")
    ] = 0.2,
    hidden: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Hidden dimensions.",
            show_default="32; for files and documents by their number",
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Layers of the encoder.",
            show_default="3; for files and documents by their number",
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(min=1, help="For files: networks to average.", show_default="by their size"),
    ] = None,
    activation: Annotated[
        str | None,
        typer.Option(
            help="Of added values: abs, identity, softplus.",
            show_default="abs; for files and documents identity",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="muon, fast, large, medium, small, tiny, or paper.",
            show_default="muon; for files and documents by their number",
        ),
    ] = None,
    n_epochs: Annotated[
        int | None,
        typer.Option("--epochs", help="How often every set is read.", show_default="the recipe's"),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Sets per step.", show_default="the recipe's")
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="Highest learning rate of the schedule.", show_default="the recipe's"),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a gain.")
    ] = None,
    fixed_order: Annotated[
        bool, typer.Option("--fixed-order", help="Do not reorder instances every epoch.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            help="Read instances sorted by worth, or by a feature: its number; for files its name."
        ),
    ] = None,
    upper_bound: Annotated[
        float | None, typer.Option(help="Prior: no added value exceeds this.")
    ] = None,
    prior_weight: Annotated[
        float,
        typer.Option(min=0, help="Its weight, which means the same in every unit of the labels."),
    ] = 1.0,
    consistent: Annotated[
        float | None,
        typer.Option(min=0, help="Prior: exchanged neighbours add the same; its weight, say 10."),
    ] = None,
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

    from capnets.memory import keep_freed

    torch.set_num_threads(threads)
    keep_freed()
    changes: dict[str, Any] = {
        "batch_size": batch_size, "patience": patience, "learning_rate": learning_rate,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None}
    _check_orders(model, sort=sort, consistent=consistent)
    priors = _priors(upper_bound, prior_weight, consistent)
    order = int(sort) if sort is not None and sort.isdigit() else sort
    if is_file(source):
        refuse(context, FOR_TASKS, "for tasks only, not for a file")
        train_file(
            source,
            columns=columns(
                context, source, set_column, target, features=features, categories=categories,
                order=order_column, group=group_column, weight=weight_column, missing=missing,
                text=text_column,
            ),
            settings={
                "model": model, "hidden": hidden, "layers": layers, "members": members,
                "activation": activation or "identity", "epochs": n_epochs, "random_state": seed,
                "sort": order, "priors": priors or None,
                **file_recipe(recipe, changes, fixed_order=fixed_order),
            },
            out=out, test_share=test_share, classify=classify, as_json=as_json,
            how={"resume": resume, "force": force},
        )  # fmt: skip
        return
    refuse(context, FOR_FILES, "for files only, not for a task")
    from capnets.tasks.sentiment import is_sentiment

    if n_epochs is not None:
        changes["epochs"] = n_epochs
    if fixed_order:
        changes["reshuffle"] = False
    network = {
        "name": model, "hidden": hidden, "layers": layers, "activation": activation,
        "order": order,
    }  # fmt: skip
    told: dict[str, Any] = {
        "network": network,
        "recipe": recipe,
        "changes": changes,
        "priors": priors,
        "how": {
            "seed": seed, "out": out, "threads": threads, "devices": devices,
            "resume": resume, "force": force, "as_json": as_json,
        },
    }  # fmt: skip
    if is_sentiment(source):
        refuse(context, FOR_IMAGES, "documents are as many and as long as they are")
        train_documents(source, embedding=embedding, **told)
        return
    drawing = {
        "embedding": embedding, "sizes": size, "sets": sets, "valid_sets": valid_sets,
        "test_sets": test_sets,
    }  # fmt: skip
    train_images(source, drawing=drawing, **told)


def _check_orders(model: str, *, sort: str | None, consistent: float | None) -> None:
    """Refuse what would be done about the order of instances where no order matters."""
    from capnets.models import build

    asked = {
        "--sort": sort is not None,
        "--consistent": consistent is not None,
    }
    given = [name for name, is_given in asked.items() if is_given]
    if given and not build(model, seed=0).ordered:
        raise InputError(
            f"{', '.join(given)}: no order changes what {model} predicts; leave it out"
        )
    if sort is not None and len(given) > 1:
        raise InputError(
            f"{', '.join(given[1:])}: sorted instances have one order only; "
            "leave it out, or do not --sort"
        )


def _priors(
    upper_bound: float | None, prior_weight: float, consistent: float | None
) -> list[Prior]:
    from capnets.training.priors import Consistent, UpperBound

    priors: list[Prior] = []
    if upper_bound is not None:
        priors.append(UpperBound(weight=prior_weight, bound=upper_bound))
    if consistent is not None:
        priors.append(Consistent(weight=consistent))
    return priors


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(train)
