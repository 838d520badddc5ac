"""`capnets train`: train a network on a file of sets."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.cli import options as o
from capnets.cli.printing import Json, epochs, loading, print_json, print_table, stopping

if TYPE_CHECKING:
    from capnets.learn import Options, Plan, Problem
    from capnets.runs import Run

__all__ = ["add_to", "print_quality", "train"]


def train(
    file: Annotated[str, typer.Argument(help="Parquet, CSV, TSV, Feather or .npz.")],
    set_column: o.SetColumn = None,
    target: o.Target = None,
    time: o.Time = None,
    event: o.Event = None,
    features: o.Features = None,
    categories: o.Categories = None,
    order_column: o.OrderColumn = None,
    group_column: o.GroupColumn = None,
    weight_column: o.WeightColumn = None,
    text_column: o.TextColumn = None,
    missing: o.Missing = "refuse",
    classify: o.Classify = None,
    model: o.Model = None,
    hidden: o.Hidden = None,
    layers: o.Layers = None,
    members: o.Members = None,
    activation: o.Activation = None,
    aggregation: o.AggregationName = None,
    baseline: o.BaselineName = None,
    sort: o.Sort = None,
    recipe: o.RecipeName = None,
    n_epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    batch_instances: o.BatchInstances = None,
    sample_instances: o.SampleInstances = None,
    learning_rate: o.LearningRate = None,
    patience: o.Patience = None,
    fixed_order: o.FixedOrder = False,
    upper_bound: o.UpperBound = None,
    prior_weight: o.PriorWeight = 1.0,
    consistent: o.Consistent = None,
    test_share: Annotated[
        float, typer.Option(rich_help_panel=o.RUN, help="Share of the sets to test on.")
    ] = 0.2,
    out: o.Out = None,
    seed: o.Seed = 0,
    threads: o.Threads = 1,
    resume: o.Resume = False,
    force: o.Force = False,
    as_json: Json = False,
) -> None:
    """Train a network on a file; interrupt it at any time and continue with --resume.

    Settings that are not given depend on the number of sets. Set tasks and reviews are trained by
    `capnets task train`.
    """
    from capnets.estimators.problems import file_problem
    from capnets.learn import Options

    target, survival = o.survival_of(target, time, event)
    columns = o.columns_of(
        file, set_column, target, features=features, categories=categories, order=order_column,
        group=group_column, weight=weight_column, missing=missing, text=text_column,
    )  # fmt: skip
    asked = Options(
        model=model, hidden=hidden, layers=layers, members=members, activation=activation,
        aggregation=aggregation, baseline=baseline,
        sort=o.sort_of(sort), orders=1 if fixed_order else None,
        priors=o.priors_of(upper_bound, prior_weight, consistent),
        recipe=o.recipe_of(
            recipe, batch_size=batch_size, batch_instances=batch_instances,
            sample_instances=sample_instances, learning_rate=learning_rate, patience=patience,
            fixed_order=fixed_order,
        ),
        epochs=n_epochs, early_stopping="auto" if patience is None else True, seed=seed,
    )  # fmt: skip
    run = o.RunOptions(out, threads, resume, force, as_json)
    read = partial(file_problem, file, columns, classify=classify, survival=survival)
    _train(read, Path(file).stem, asked, test_share, run)


def _train(
    read: Callable[..., tuple[Problem, str]],
    name: str,
    asked: Options,
    test_share: float,
    where: o.RunOptions,
) -> None:
    import torch

    from capnets.learn import choose
    from capnets.learn import train as train_plan
    from capnets.memory import keep_freed
    from capnets.training.callbacks import EpochEnd

    torch.set_num_threads(where.threads)
    keep_freed()
    with tempfile.TemporaryDirectory() as scratch, stopping():
        problem, note = read(folder=Path(scratch) / "s")
        if not where.as_json:
            typer.echo(note, err=True)
        if test_share:
            problem = problem.with_test(test_share, seed=asked.seed)
        folder = where.out or Path("runs") / f"{name}-{asked.model or 'auto'}-{asked.seed}"
        with loading() as show_loading:
            recorded = _recorded(folder) if where.resume else None
            plan = choose(problem, asked, recorded=recorded, progress=show_loading)
        if not where.as_json and plan.choice is not None:
            _print_choice(plan)
        each, members = plan.recipe.epochs, plan.model.members
        networks = plan.model.name if members == 1 else f"{members} {plan.model.name} networks"
        with epochs(f"{networks} on {name}", each * members, quiet=where.as_json) as show:

            def progress(line: dict[str, Any]) -> None:
                # Members are trained one after another; each has all epochs of the recipe.
                show({**line, "epoch": line.get("member", 0) * each + line["epoch"]})

            run = train_plan(
                problem,
                plan,
                folder,
                resume=where.resume,
                force=where.force,
                callbacks=[EpochEnd(progress)],
            )
    if where.as_json:
        print_json({"run": str(run.folder), **run.metrics})
        return
    print_quality(run)
    typer.echo(f"The run is in {run.folder} ({run.metrics['total_seconds']} s).")
    typer.echo(f"Use it: capnets predict {run.folder} FILE -o predictions.parquet")
    typer.echo(f"Explain it: capnets explain {run.folder} FILE --html explained.html")


def _recorded(folder: Path) -> Plan | None:
    """Return the plan of an interrupted run, if there is one in the folder."""
    from capnets.learn import Plan
    from capnets.runs import Run

    return Plan.of(Run(folder).config) if (folder / "config.json").exists() else None


def _print_choice(plan: Plan) -> None:
    assert plan.choice is not None
    rows = [
        (c["model"], c["aggregation"], c["baseline"], c["loss"])
        for c in plan.choice.get("compared", [])
    ]
    if rows:
        print_table(["network", "aggregation", "baseline", "loss"], rows, title="Compared networks")
    spec = plan.model
    typer.echo(
        f"Training {spec.name}, aggregation {spec.aggregation}, baseline {spec.baseline} "
        f"({plan.choice['reason']}); -m names another network."
    )


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


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(train)
