"""`capnets train TASK`: the same command, for sets of images or for documents."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from capnets.cli.printing import epochs, loading, print_json, print_measures, stopping

if TYPE_CHECKING:
    from capnets.runs import Run
    from capnets.tasks import TaskSpec
    from capnets.tasks.sentiment import ReviewSpec
    from capnets.training.priors import Prior

__all__ = ["train_documents", "train_images"]


def train_images(
    source: str, *, drawing: dict[str, Any], embedding: str | None = None, **told: Any
) -> None:
    """Train on sets of images and print what came of it."""
    from capnets.tasks import parse_task

    _train(parse_task(source, **drawing, seed=told["how"]["seed"]), **told)


def train_documents(source: str, *, embedding: str | None, **told: Any) -> None:
    """Train on documents and print the result."""
    from capnets.tasks.sentiment import parse_reviews

    _train(parse_reviews(source, embedding=embedding, seed=told["how"]["seed"]), **told)


def _train(
    task: TaskSpec | ReviewSpec,
    *,
    network: dict[str, Any],
    recipe: str | None,
    changes: dict[str, Any],
    priors: list[Prior],
    how: dict[str, Any],
) -> None:
    from capnets.learn import Options, make_plan, train
    from capnets.learn.tasks import task_problem
    from capnets.training.callbacks import EpochEnd
    from capnets.training.fit import make_fabric
    from capnets.training.recipe import recipe as find_recipe

    with loading() as progress:
        problem = task_problem(task, progress=progress)
    seed, threads, as_json = how["seed"], how["threads"], how["as_json"]
    options = Options(
        model=network["name"], hidden=network["hidden"], layers=network["layers"],
        activation=network["activation"], sort=network["order"], priors=tuple(priors), seed=seed,
        recipe=changes if recipe is None else replace(find_recipe(recipe), **changes),
    )  # fmt: skip
    plan = make_plan(problem, options)
    model = plan.model
    folder = how["out"] or Path("runs") / f"{task.name.replace(':', '-')}-{model.name}-{seed}"
    # What starts the other processes would choose a number of threads, were there none here.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    fabric = make_fabric(how["devices"])
    first = fabric.is_global_zero
    title = f"{model.name} on {task.name}"
    with (
        stopping(quiet=not first),
        epochs(title, plan.recipe.epochs, quiet=as_json or not first) as show,
    ):
        run = train(
            problem, plan, folder, resume=how["resume"], force=how["force"],
            callbacks=[EpochEnd(show)],
            fabric=fabric,
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
