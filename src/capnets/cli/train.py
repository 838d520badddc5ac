"""`capnets train`: a network on a set task, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, epochs, print_json, print_table

__all__ = ["add_to", "train"]


def train(
    source: Annotated[str, typer.Argument(help="A task: US, unique-sum, unique-sum:digits, …")],
    model: Annotated[str, typer.Option("--model", "-m", help="A name from `capnets models`.")] = "c-gru",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder. [default: runs/TASK-MODEL-SEED]")] = None,
    size: Annotated[str, typer.Option(help="Instances per set: 10, or 5,10,20, or varying.")] = "10",
    sets: Annotated[int, typer.Option(help="Sets to train on.")] = 100_000,
    valid_sets: Annotated[int, typer.Option(help="Sets to choose the best epoch by.")] = 10_000,
    test_sets: Annotated[int, typer.Option(help="Sets to measure the result on.")] = 10_000,
    embedding: Annotated[str | None, typer.Option(help="How images become features.")] = None,
    hidden: Annotated[int, typer.Option(help="Hidden dimensions.")] = 32,
    layers: Annotated[int, typer.Option(help="Layers of the encoder.")] = 3,
    activation: Annotated[str, typer.Option(help="Of added values: abs, identity, softplus.")] = "abs",
    recipe: Annotated[str, typer.Option(help="fast, or paper (the paper's optimiser).")] = "fast",
    n_epochs: Annotated[int | None, typer.Option("--epochs", help="[default: the recipe's]")] = None,
    batch_size: Annotated[int | None, typer.Option(help="[default: the recipe's]")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="[default: the recipe's]")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a gain.")] = None,
    upper_bound: Annotated[float | None, typer.Option(help="Prior: no added value exceeds this.")] = None,
    prior_weight: Annotated[float, typer.Option(help="Weight of the prior.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of start weights, orders and sets.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of the network's arithmetic.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a run that is there.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Train a network on a set task; stop it at any time and go on with --resume."""
    import torch

    from capnets.experiment import train_task
    from capnets.models import ModelSpec
    from capnets.tasks import parse_task
    from capnets.training.priors import UpperBound
    from capnets.training.recipe import recipe as find_recipe

    torch.set_num_threads(threads)
    task = parse_task(
        source, embedding=embedding, sizes=size, sets=sets,
        valid_sets=valid_sets, test_sets=test_sets, seed=seed,
    )  # fmt: skip
    pictures = task.embedding == "none" and task.source != "digits"
    network = ModelSpec(
        model, hidden=hidden, layers=layers, activation=activation,
        inputs="pictures" if pictures else "none",
    )  # fmt: skip
    how = find_recipe(
        recipe,
        epochs=n_epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        patience=patience,
    )
    priors = [] if upper_bound is None else [UpperBound(weight=prior_weight, bound=upper_bound)]
    folder = out or Path("runs") / f"{task.name.replace(':', '-')}-{model}-{seed}"
    with epochs(f"{model} on {task.name}", how.epochs, quiet=as_json) as progress:
        run = train_task(
            folder, task, network, recipe=how, seed=seed, priors=priors,
            resume=resume, force=force, progress=progress,
        )  # fmt: skip
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


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(train)
