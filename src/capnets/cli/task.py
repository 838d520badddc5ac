"""`capnets task`: list set tasks and reviews, show their labels, train on them, evaluate."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.cli import options as o
from capnets.cli.printing import (
    Json,
    console,
    epochs,
    loading,
    print_json,
    print_measures,
    print_table,
    stopping,
)

if TYPE_CHECKING:
    from capnets.learn import Options
    from capnets.learn.tasks import Task

__all__ = ["add_to", "evaluate_task"]

SETS = "Sets of images"

task = typer.Typer(help="List set tasks and reviews; train on them.", no_args_is_help=False)

TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="US, unique-sum:digits, sentiment, …")
]
Size = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=SETS,
        help="Instances per set: 10, or 5,10,20, or varying.",
        show_default="10",
    ),
]
Count = Annotated[
    int | None,
    typer.Option(rich_help_panel=SETS, help="Number of training sets.", show_default="100,000"),
]


@task.callback(invoke_without_command=True)
def _group(context: typer.Context, as_json: Json = False) -> None:
    """List set tasks and reviews, show their labels, train on them, evaluate."""
    if not context.invoked_subcommand:
        _list(as_json)


@task.command("list")
def listing(as_json: Json = False) -> None:
    """List the set tasks and reviews."""
    _list(as_json)


def _list(as_json: bool) -> None:
    from capnets.tasks import EMBEDDINGS, FUNCTIONS, SOURCES
    from capnets.tasks.sentiment import REVIEWS

    rows = [(f.name, f.short, f.source, f.formula) for f in FUNCTIONS.values()]
    if as_json:
        functions = [
            dict(zip(("name", "short", "source", "formula"), r, strict=True)) for r in rows
        ]
        print_json(
            {
                "functions": functions,
                "sources": [*SOURCES],
                "embeddings": [*EMBEDDINGS],
                "documents": {"name": "sentiment", "short": "Sent", "sources": [*REVIEWS]},
            }
        )
        return
    rows.append(("sentiment", "Sent", "", "the rating of a document, a set of sentences"))
    print_table(["task", "short", "the paper's images", "label of a set"], rows)
    typer.echo(f"Images: {', '.join(SOURCES)}. Embeddings: {', '.join(EMBEDDINGS)}.")
    typer.echo(f"Documents: {', '.join(REVIEWS)}.")
    typer.echo(
        "Write TASK:SOURCE:EMBEDDING, for example unique-sum:digits, US:mnist:pca or "
        "sentiment:ted-comments."
    )


@task.command()
def show(
    name: TaskName,
    size: Size = None,
    sets: Count = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the sets.", show_default="0")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show mean, variance and histogram of a task's labels, drawn and exact."""
    from capnets.learn.tasks import parse
    from capnets.tasks import TaskSpec
    from capnets.tasks.drawing import draw_labels
    from capnets.tasks.functions import ClosedForms
    from capnets.tasks.statistics import expected_labels, histogram, statistics

    spec = parse(name, **_given(sizes=size, sets=sets, seed=seed))
    if not isinstance(spec, TaskSpec):
        _show_documents(name, as_json=as_json)
        return
    labels = draw_labels(spec)
    drawn, counts = statistics(labels), histogram(labels)
    exact = expected_labels(spec) if isinstance(spec.set_function, ClosedForms) else None
    if as_json:
        expected = exact and {
            "mean": exact.mean,
            "median": exact.median,
            "variance": exact.variance,
        }
        print_json(
            {
                "task": spec.to_dict(),
                "drawn": asdict(drawn),
                "exact": expected,
                "histogram": asdict(counts),
            }
        )
        return
    if exact is None:
        print_table(["label", "drawn"], list(asdict(drawn).items()), title=spec.name)
        return
    rows: list[tuple[Any, ...]] = [
        ("mean", drawn.mean, exact.mean),
        ("median", drawn.median, exact.median),
        ("variance", drawn.variance, exact.variance),
        ("deviation", drawn.deviation, exact.variance**0.5),
        ("smallest", drawn.smallest, float(exact.values[0])),
        ("largest", drawn.largest, float(exact.values[-1])),
    ]
    title = f"Labels of {spec.sets:,} sets of {spec.name}, size {', '.join(map(str, spec.sizes))}"
    print_table(["label", "drawn", "exact"], rows, title=title)
    _bars(counts.start, counts.width, counts.counts)


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


@task.command()
def train(
    name: TaskName,
    size: Size = None,
    sets: Count = None,
    valid_sets: Annotated[
        int | None,
        typer.Option(rich_help_panel=SETS, help="Validation sets.", show_default="10,000"),
    ] = None,
    test_sets: Annotated[
        int | None, typer.Option(rich_help_panel=SETS, help="Test sets.", show_default="10,000")
    ] = None,
    embedding: Annotated[str | None, typer.Option(help="Embedding of images or sentences.")] = None,
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
    learning_rate: o.LearningRate = None,
    patience: o.Patience = None,
    fixed_order: o.FixedOrder = False,
    upper_bound: o.UpperBound = None,
    prior_weight: o.PriorWeight = 1.0,
    consistent: o.Consistent = None,
    out: o.Out = None,
    seed: o.Seed = 0,
    threads: o.Threads = 1,
    devices: Annotated[
        int,
        typer.Option(rich_help_panel=o.RUN, min=1, help="GPUs (or processes) that share a batch."),
    ] = 1,
    resume: o.Resume = False,
    force: o.Force = False,
    as_json: Json = False,
) -> None:
    """Train a network on a set task or on reviews; continue an interrupted run with --resume."""
    from capnets.learn import Options
    from capnets.learn.tasks import parse

    asked = Options(
        model=model, hidden=hidden, layers=layers, members=members, activation=activation,
        aggregation=aggregation, baseline=baseline,
        sort=o.sort_of(sort), priors=o.priors_of(upper_bound, prior_weight, consistent),
        recipe=o.recipe_of(
            recipe, batch_size=batch_size, learning_rate=learning_rate, patience=patience,
            fixed_order=fixed_order,
        ),
        epochs=n_epochs, seed=seed,
    )  # fmt: skip
    drawing = _given(sizes=size, sets=sets, valid_sets=valid_sets, test_sets=test_sets)
    spec = parse(name, embedding=embedding, seed=seed, **drawing)
    _train(spec, asked, o.RunOptions(out, threads, resume, force, as_json, devices))


def _train(spec: Task, asked: Options, where: o.RunOptions) -> None:
    import torch

    from capnets.learn import make_plan
    from capnets.learn import train as train_plan
    from capnets.learn.tasks import task_problem
    from capnets.memory import keep_freed
    from capnets.training.callbacks import EpochEnd
    from capnets.training.fit import make_fabric

    torch.set_num_threads(where.threads)
    keep_freed()
    with loading() as show_loading:
        problem = task_problem(spec, progress=show_loading)
    plan = make_plan(problem, asked)
    name = problem.name
    folder = where.out or Path("runs") / f"{name.replace(':', '-')}-{plan.model.name}-{plan.seed}"
    # The launcher of the other processes would choose the number of threads if it were not set.
    os.environ.setdefault("OMP_NUM_THREADS", str(where.threads))
    fabric = make_fabric(where.devices)
    first = fabric.is_global_zero
    quiet = where.as_json or not first
    each, members = plan.recipe.epochs, plan.model.members
    with (
        stopping(quiet=not first),
        epochs(f"{plan.model.name} on {name}", each * members, quiet=quiet) as show,
    ):

        def progress(line: dict[str, Any]) -> None:
            show({**line, "epoch": line.get("member", 0) * each + line["epoch"]})

        run = train_plan(
            problem, plan, folder, resume=where.resume, force=where.force, fabric=fabric,
            callbacks=[EpochEnd(progress)],
        )  # fmt: skip
    if not first:
        return
    if where.as_json:
        print_json({"run": str(run.folder), **run.metrics})
        return
    print_measures({n: m for n, m in run.metrics.items() if n in ("shared", "held-out")})
    typer.echo(f"The run is in {run.folder} ({run.metrics['train_seconds']} s of training).")
    typer.echo(f"See what each instance adds: capnets explain {run.folder}")


@task.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run on a task.")],
    test_sets: Annotated[
        int | None, typer.Option(help="Number of test sets.", show_default="as trained")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Instances per set.", show_default="as trained")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the sets.", show_default="as trained")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a run on new sets of its task."""
    evaluate_task(run, test_sets=test_sets, size=size, seed=seed, as_json=as_json)


def evaluate_task(
    folder: Path,
    *,
    test_sets: int | None = None,
    size: str | None = None,
    seed: int | None = None,
    as_json: bool = False,
) -> None:
    """Measure a run on sets of its task, and print the result."""
    from capnets.learn.measure import measure_problem
    from capnets.learn.tasks import task_of, task_problem
    from capnets.runs import load

    trained = load(folder)
    with loading() as progress:
        drawn = task_of(trained, test_sets=test_sets, sizes=size, seed=seed, progress=progress)
    result = measure_problem(trained.model, task_problem(drawn), seed=drawn.spec.seed)
    if as_json:
        print_json(result)
        return
    print_measures({name: measured for name, measured in result.items() if name != "orders"})
    if "orders" in result:
        found = result["orders"]
        typer.echo(
            f"Order: MSE {found['mean']:.4g} ± {found['deviation']:.2g} over {len(found['mse'])} "
            f"random orders; the prediction of a set moves by {found['spread']:.3g}."
        )


def _show_documents(name: str, *, as_json: bool) -> None:
    """Print ratings and lengths of all documents; needs no embedding."""
    from capnets.tasks.sentiment import REVIEWS, parse_reviews
    from capnets.tasks.statistics import statistics

    spec = parse_reviews(name)
    documents, ratings = REVIEWS[spec.source](None)
    found = {
        "rating": asdict(statistics(ratings)),
        "sentences": asdict(statistics([len(document) for document in documents])),
    }
    if as_json:
        print_json({"task": spec.to_dict(), **found})
        return
    names = [name for name in found["rating"] if name != "count"]
    print_table(
        ["", "rating", "sentences"],
        [(name, *(found[column][name] for column in found)) for name in names],
        title=f"{len(documents):,} documents of {spec.name}",
    )


def _bars(start: int, width: int, counts: tuple[int, ...], *, lines: int = 25) -> None:
    """Print a histogram in text with a limited number of lines."""
    step = -(-len(counts) // lines)
    grouped = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
    highest = max(grouped)
    for number, count in enumerate(grouped):
        low = start + number * step * width
        high = low + step * width - 1
        label = f"{low}" if low == high else f"{low}-{high}"
        console().print(f"{label:>13}  {'█' * round(50 * count / highest)} {count:,}")


def add_to(app: typer.Typer) -> None:
    """Register the commands; `tasks` is the former name of the group."""
    app.add_typer(task, name="task")
    app.add_typer(task, name="tasks", hidden=True)
