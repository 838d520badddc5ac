"""`capnets train TASK`: the same command, for sets of images or for documents."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from capnets.cli.printing import epochs, loading, print_json, print_measures, stopping

if TYPE_CHECKING:
    from capnets.models import ModelSpec
    from capnets.runs import Run
    from capnets.tasks import TaskSpec
    from capnets.tasks.sentiment import ReviewSets
    from capnets.training.priors import Prior
    from capnets.training.recipe import Recipe

__all__ = ["train_documents", "train_images"]


def train_images(
    source: str,
    *,
    drawing: dict[str, Any],
    network: dict[str, Any],
    recipe: str | None,
    changes: dict[str, Any],
    priors: list[Prior],
    how: dict[str, Any],
) -> None:
    """Train on sets of images and print what came of it.

    Parameters
    ----------
    drawing
        How the sets are drawn, as in `parse_task`.
    network
        The name of the network, and what was said about it.
    recipe, changes
        A recipe and what was said otherwise.
    how
        Seed, folder, threads, devices, whether to resume or replace, whether to print JSON.
    """
    from capnets.models import ModelSpec
    from capnets.tasks import parse_task

    task = parse_task(source, **drawing, seed=how["seed"])
    pictures = task.embedding == "none" and task.source != "digits"
    spec = ModelSpec.from_dict(
        {"activation": "abs", **_said(network), "inputs": "pictures" if pictures else "none"}
    )
    _train(task, spec, _recipe(recipe or "muon", changes), priors=priors, **how)


def train_documents(
    source: str,
    *,
    embedding: str | None,
    network: dict[str, Any],
    recipe: str | None,
    changes: dict[str, Any],
    priors: list[Prior],
    how: dict[str, Any],
) -> None:
    """The same with documents: what is not said depends on how many there are.

    A sentence can lower a rating, so added values may be negative unless said otherwise.
    """
    from capnets.models import ModelSpec
    from capnets.tasks.sentiment import make_reviews, parse_reviews
    from capnets.training.presets import preset_for

    spec = parse_reviews(source, embedding=embedding, seed=how["seed"])
    with loading() as progress:
        task = make_reviews(spec, progress=progress)
    features = task.train.in_features
    preset = preset_for(len(task.train), features)
    shape = {"hidden": preset.hidden, "layers": preset.layers, "activation": "identity"}
    model = ModelSpec.from_dict({**shape, **_said(network), "in_features": features})
    _train(task, model, _recipe(recipe or preset.recipe, changes), priors=priors, **how)


def _said(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _recipe(name: str, changes: dict[str, Any]) -> Recipe:
    from capnets.training.recipe import recipe

    return replace(recipe(name), **changes)


def _train(
    task: TaskSpec | ReviewSets,
    model: ModelSpec,
    recipe: Recipe,
    *,
    priors: list[Prior],
    seed: int,
    out: Path | None,
    threads: int,
    devices: int,
    as_json: bool,
    **again: bool,
) -> None:
    from capnets.experiment import train_task
    from capnets.tasks.sentiment import ReviewSets
    from capnets.training.fit import make_fabric

    name = task.spec.name if isinstance(task, ReviewSets) else task.name
    folder = out or Path("runs") / f"{name.replace(':', '-')}-{model.name}-{seed}"
    # What starts the other processes would choose a number of threads, were there none here.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    fabric = make_fabric(devices)
    first = fabric.is_global_zero
    title = f"{model.name} on {name}"
    with (
        stopping(quiet=not first),
        epochs(title, recipe.epochs, quiet=as_json or not first) as show,
        loading() as show_loading,
    ):
        run = train_task(
            folder, task, model, recipe=recipe, seed=seed, priors=priors,
            progress=show, loading=show_loading, fabric=fabric, **again,
        )  # fmt: skip
    if not first:
        return
    if as_json:
        print_json({"run": str(run.folder), **run.metrics})
        return
    _say(run)


def _say(run: Run) -> None:
    print_measures({n: m for n, m in run.metrics.items() if n in ("shared", "held-out")})
    typer.echo(f"The run is in {run.folder} ({run.metrics['train_seconds']} s of training).")
    typer.echo(f"See what each instance added: capnets explain {run.folder}")
