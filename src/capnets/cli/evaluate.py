"""`capnets evaluate`: the quality of a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, loading, print_json, print_measures, print_table
from capnets.errors import InputError

__all__ = ["add_to", "evaluate"]


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[str | None, typer.Argument(help="Labelled sets, for a run on a file.")] = None,
    test_sets: Annotated[
        int | None, typer.Option(help="How many sets.", show_default="as trained")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Instances per set.", show_default="as trained")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the test sets.", show_default="as trained")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a run on new sets: of its task (of seen and of unseen images), or of a file."""
    if file is not None:
        if any(given is not None for given in (test_sets, size, seed)):
            raise InputError("--test-sets, --size and --seed are for runs on a task, not on a file")
        from capnets.estimators.runs import evaluate_run

        measured = evaluate_run(run, file)
        if as_json:
            print_json(measured)
        else:
            print_table(["measure", "value"], list(measured.items()))
        return
    from capnets.learn.measure import measure_problem
    from capnets.learn.tasks import task_of, task_problem
    from capnets.runs import load

    trained = load(run)
    with loading() as progress:
        task = task_of(trained, test_sets=test_sets, sizes=size, seed=seed, progress=progress)
    result = measure_problem(trained.model, task_problem(task), seed=task.spec.seed)
    if as_json:
        print_json(result)
        return
    print_measures({name: measured for name, measured in result.items() if name != "orders"})
    if "orders" in result:
        o = result["orders"]
        typer.echo(
            f"Order: MSE {o['mean']:.4g} ± {o['deviation']:.2g} over {len(o['mse'])} random "
            f"orders; the prediction of a set moves by {o['spread']:.3g}."
        )


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(evaluate)
