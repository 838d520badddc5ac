"""`capnets train FILE`: the same command, for a table of the user's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from capnets.cli.printing import epochs, print_json, print_table, stopping

if TYPE_CHECKING:
    from capnets.ingest import Columns
    from capnets.runs import Run

__all__ = ["file_recipe", "kind_of", "print_quality", "train_file"]


def train_file(
    source: str,
    *,
    columns: Columns | None,
    settings: dict[str, Any],
    out: Path | None,
    test_share: float,
    classify: bool,
    as_json: bool,
    how: dict[str, bool],
) -> None:
    """Train on a file and print what came of it.

    `settings` are those of the estimator, `how` says whether to resume or replace a run.
    """
    import tempfile

    from capnets.estimators.base import seed_of
    from capnets.estimators.problems import data_problem
    from capnets.learn import Options, make_plan, train
    from capnets.training.callbacks import EpochEnd

    told = {k: v for k, v in settings.items() if k not in ("random_state", "priors")}
    options = Options(
        **told, priors=tuple(settings["priors"] or ()), seed=seed_of(settings["random_state"])
    )
    classify = kind_of(source, columns, classify=classify).classifies
    name = Path(source).stem
    folder = out or Path("runs") / f"{name}-{options.model}-{options.seed}"
    title = f"{options.model} on {name}"
    with (
        tempfile.TemporaryDirectory() as scratch,
        stopping(),
        epochs(title, None, quiet=as_json) as show,
    ):
        kept = Path(scratch) / "sets"
        problem = data_problem(source, columns=columns, classify=classify, folder=kept)
        if test_share:
            problem = problem.with_test(test_share, seed=options.seed)
        plan = make_plan(problem, options)
        each, members = plan.recipe.epochs, plan.model.members

        def progress(line: dict[str, Any]) -> None:
            # Members are trained one after another; each has all epochs of the recipe.
            done = line.get("member", 0) * each + line["epoch"]
            show({**line, "epoch": done, "epochs": each * members})

        run = train(
            problem,
            plan,
            folder,
            callbacks=[EpochEnd(progress)],
            resume=how["resume"],
            force=how["force"],
        )
    if as_json:
        print_json({"run": str(run.folder), **run.metrics})
        return
    print_quality(run)
    typer.echo(f"The run is in {run.folder} ({run.metrics['total_seconds']} s).")
    typer.echo(f"Use it: capnets predict {run.folder} FILE -o predictions.parquet")


def file_recipe(name: str | None, changes: dict[str, Any], *, fixed_order: bool) -> dict[str, Any]:
    """What an estimator is told: a recipe, or changes to the one that it will choose."""
    from capnets.training.recipe import recipe

    told: dict[str, Any] = {}
    if fixed_order:
        changes = {**changes, "reshuffle": False}
        told["orders"] = 1
    if "patience" in changes:
        told["early_stopping"] = True
    told["recipe"] = (changes or None) if name is None else replace(recipe(name), **changes)
    return told


def print_quality(run: Run) -> None:
    """What came of a run on a file."""
    parts = {k: run.metrics[k] for k in ("train", "test") if k in run.metrics}
    measures = list(next(iter(parts.values())))
    print_table(
        ["sets", "number", *measures],
        [(n, run.metrics[f"{n}_sets"], *(m.get(k) for k in measures)) for n, m in parts.items()],
    )


def kind_of(source: str, columns: Columns | None, *, classify: bool) -> Any:
    """The estimator for a file: a classifier if asked for, or if its target names classes."""
    from capnets.estimators import SetClassifier, SetRegressor

    return SetClassifier if classify or _names_classes(source, columns) else SetRegressor


def _names_classes(source: str, columns: Columns | None) -> bool:
    from capnets.ingest import npz_classes
    from capnets.ingest.read import names_classes
    from capnets.ingest.sources import open_source

    if columns is None:
        return npz_classes(source) is not None
    table = open_source(source)
    return all(t in table.names and names_classes(table, t) for t in columns.target)
