"""`capnets train`: train a network on a file of sets."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capnets.cli.columns import ColumnOptions, FolderOptions
from capnets.cli.options import (
    RUN,
    DataFile,
    NetworkOptions,
    RunOptions,
    TrainingOptions,
    grouped,
    options_of,
)
from capnets.cli.printing import epochs, loading, print_json, print_table, stopping

if TYPE_CHECKING:
    from capnets.learn import Plan, Problem
    from capnets.runs import Run
    from capnets.training.device import Devices

__all__ = ["make_devices", "print_quality", "train", "train_with_progress"]

#: Loss by which networks are compared, by kind of target; otherwise the log loss.
LOSSES = {"amount": "Squared error", "survival": "1 - concordance"}


@grouped
def train(
    file: DataFile,
    columns: ColumnOptions,
    folders: FolderOptions,
    network: NetworkOptions,
    training: TrainingOptions,
    run: RunOptions,
    test_share: Annotated[
        float, typer.Option(rich_help_panel=RUN, help="Share of the sets to test on.")
    ] = 0.2,
) -> None:
    """Train a network on a file; interrupt it at any time and continue with --resume.

    Settings that are not given depend on the number of sets. Set tasks and reviews are trained by
    `capnets task train`.
    """
    from capnets.estimators.problems import file_problem
    from capnets.learn import choose
    from capnets.runs import Run

    asked = options_of(network, training, seed=run.seed)
    fabric = make_devices(run)
    first = fabric.is_global_zero  # the others run the same command silently
    quiet = run.as_json or not first
    name, began = Path(file).stem, time.monotonic()
    folder = run.out or Path("runs") / f"{name}-{asked.model or 'auto'}-{asked.seed}"
    if first and not run.resume and not run.force:
        Run.check_free(folder)
    with tempfile.TemporaryDirectory() as scratch, stopping(quiet=not first):
        with loading() as show_reading:
            data = folders.of(file, columns.folder, show_reading) if columns.folder else file
            problem, note = file_problem(
                data, columns.of(file), classify=columns.classify, survival=columns.survival,
                counts=training.loss == "poisson", folder=Path(scratch) / "s",
            )  # fmt: skip
        if not quiet:
            typer.echo(note, err=True)
        if test_share and not problem.tests:
            problem = problem.with_test(test_share, seed=asked.seed)
        with loading() as show_loading:
            recorded = _recorded(folder, first=first) if run.resume or not first else None
            plan = choose(problem, asked, recorded=recorded, progress=show_loading)
        if not quiet and plan.choice is not None:
            _print_choice(plan, problem)
        trained = train_with_progress(problem, plan, folder, run, name=name, fabric=fabric)
    if not first:
        return
    if run.as_json:
        print_json({"run": str(trained.folder), **trained.metrics})
        return
    print_quality(trained)
    typer.echo(f"The run is in {trained.folder} ({time.monotonic() - began:.0f} s).")
    typer.echo(f"Use it: capnets predict {trained.folder} FILE -o predictions.parquet")
    typer.echo(f"Explain it: capnets explain {trained.folder} FILE --html explained.html")


def make_devices(run: RunOptions) -> Devices:
    """Prepare this process for a training, and return the devices to train on."""
    import os

    import torch

    from capnets.memory import keep_freed
    from capnets.training.device import make_fabric

    torch.set_num_threads(run.threads)
    # Otherwise the launcher of the other processes would choose the number of threads.
    os.environ.setdefault("OMP_NUM_THREADS", str(run.threads))
    keep_freed()
    return make_fabric(run.devices)


def train_with_progress(
    problem: Problem, plan: Plan, folder: Path, run: RunOptions, *, name: str, fabric: Devices
) -> Run:
    """Train a plan into a folder; the first of several processes shows the progress."""
    from capnets.learn import train as train_plan
    from capnets.training.callbacks import EpochEnd
    from capnets.training.loggers import logger_of

    quiet = run.as_json or not fabric.is_global_zero
    title, members = f"{plan.model.title} on {name}", plan.model.members
    with epochs(title, plan.recipe.epochs, members=members, quiet=quiet) as show:
        return train_plan(
            problem, plan, folder, resume=run.resume, force=run.force, fabric=fabric,
            callbacks=[EpochEnd(show), *map(logger_of, run.log or ())],
        )  # fmt: skip


def _recorded(folder: Path, *, first: bool) -> Plan | None:
    """Return the plan of an interrupted run, or of the run that the first process has begun."""
    from capnets.learn import Plan
    from capnets.runs import Run

    if not first:
        return Plan.of(Run.in_training(folder).config)
    return Plan.of(Run(folder).config) if (folder / "config.json").exists() else None


def _print_choice(plan: Plan, problem: Problem) -> None:
    assert plan.choice is not None
    names = ("model", "aggregation", "baseline", "loss", "members")
    compared = plan.choice.get("compared", [])
    compared = sorted(compared, key=lambda one: math.inf if one["loss"] is None else one["loss"])
    if compared:
        title = f"{LOSSES.get(problem.target.kind, 'Log loss')} on sets held out, and members"
        rows = [[one[name] for name in names] for one in compared]
        print_table(["network", *names[1:]], rows, title=title)
    typer.echo(f"Training {plan.model.title} ({plan.choice['reason']}); -m names another network.")


def print_quality(run: Run) -> None:
    """Print the measures of a run on a file."""
    parts = {k: run.metrics[k] for k in ("train", "test") if k in run.metrics}
    measures = list(dict.fromkeys(name for measured in parts.values() for name in measured))
    print_table(
        ["sets", "number", *measures],
        [(n, run.metrics[f"{n}_sets"], *(m.get(k) for k in measures)) for n, m in parts.items()],
    )
    if any("mse" in measured and "r2" not in measured for measured in parts.values()):
        typer.echo("R² is not defined for a single set.")
