"""`capnets task`: list set tasks and reviews, show their labels, train on them, evaluate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from capnets.cli.options import (
    Json,
    NetworkOptions,
    RunOptions,
    TrainingOptions,
    grouped,
    options_of,
)
from capnets.cli.printing import console, loading, print_json, print_measures, print_table, stopping
from capnets.cli.train import make_devices, train_with_progress

__all__ = ["evaluate_task", "task"]

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
        listing(as_json)


@task.command("list")
def listing(as_json: Json = False) -> None:
    """List the set tasks and reviews."""
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
@grouped
def train(
    name: TaskName,
    *,
    size: Size = None,
    sets: Count = None,
    valid_sets: Annotated[
        int | None,
        typer.Option(rich_help_panel=SETS, help="Validation sets.", show_default="10,000"),
    ] = None,
    test_sets: Annotated[
        int | None, typer.Option(rich_help_panel=SETS, help="Test sets.", show_default="10,000")
    ] = None,
    embedding: Annotated[
        str | None, typer.Option(rich_help_panel=SETS, help="Embedding of images or sentences.")
    ] = None,
    network: NetworkOptions,
    training: TrainingOptions,
    run: RunOptions,
) -> None:
    """Train a network on a set task or on reviews; continue an interrupted run with --resume."""
    from capnets.learn import make_plan
    from capnets.learn.tasks import parse, task_problem

    drawing = _given(sizes=size, sets=sets, valid_sets=valid_sets, test_sets=test_sets)
    spec = parse(name, embedding=embedding, seed=run.seed, **drawing)
    asked = options_of(network, training, seed=run.seed)
    fabric = make_devices(run)
    with loading() as show_loading:
        problem = task_problem(spec, progress=show_loading)
    plan = make_plan(problem, asked)
    stem = problem.name.replace(":", "-")
    folder = run.out or Path("runs") / f"{stem}-{plan.model.name}-{plan.seed}"
    first = fabric.is_global_zero
    with stopping(quiet=not first):
        trained = train_with_progress(problem, plan, folder, run, name=problem.name, fabric=fabric)
    if not first:
        return
    if run.as_json:
        print_json({"run": str(trained.folder), **trained.metrics})
        return
    print_measures({n: m for n, m in trained.metrics.items() if n in ("shared", "held-out")})
    seconds = trained.metrics["train_seconds"]
    typer.echo(f"The run is in {trained.folder} ({seconds} s of training).")
    typer.echo(f"See what each instance adds: capnets explain {trained.folder}")


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
            f"random orders; the prediction of a set changes by {found['spread']:.3g}."
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
