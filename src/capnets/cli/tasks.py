"""`capnets tasks`: the set tasks, and what their labels look like."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from capnets.cli.files import refuse
from capnets.cli.printing import Json, console, print_json, print_table

__all__ = ["add_to", "show"]

tasks = typer.Typer(help="List the set tasks, or show the labels of one.", no_args_is_help=False)


@tasks.callback(invoke_without_command=True)
def listing(context: typer.Context, as_json: Json = False) -> None:
    """List the set tasks, or show the labels of one."""
    if context.invoked_subcommand:
        return
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


@tasks.command()
def show(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="US, unique-sum:digits, sentiment, …")],
    size: Annotated[
        str, typer.Option(help="For images: instances per set: 10, or 5,10,20, or varying.")
    ] = "10",
    sets: Annotated[int, typer.Option(help="For images: how many sets to draw.")] = 100_000,
    seed: Annotated[int, typer.Option(help="For images: of the sets.")] = 0,
    as_json: Json = False,
) -> None:
    """Show mean, median, variance and histogram of a task's labels, drawn and exact."""
    from capnets.tasks.sentiment import is_sentiment

    if is_sentiment(task):
        refuse(context, ("size", "sets", "seed"), "documents are as many and as long as they are")
        _show_documents(task, as_json=as_json)
        return
    from capnets.tasks import parse_task
    from capnets.tasks.drawing import draw_labels
    from capnets.tasks.functions import ClosedForms
    from capnets.tasks.statistics import expected_labels, histogram, statistics

    spec = parse_task(task, sizes=size, sets=sets, seed=seed)
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
    title = f"Labels of {sets:,} sets of {spec.name}, size {', '.join(map(str, spec.sizes))}"
    print_table(["label", "drawn", "exact"], rows, title=title)
    _bars(counts.start, counts.width, counts.counts)


def _show_documents(task: str, *, as_json: bool) -> None:
    """Ratings and lengths of all documents; no sentence has to become a vector for that."""
    from capnets.tasks.sentiment import REVIEWS, parse_reviews
    from capnets.tasks.statistics import statistics

    spec = parse_reviews(task)
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
    """A histogram in text, at most so many lines."""
    step = -(-len(counts) // lines)
    grouped = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
    highest = max(grouped)
    for number, count in enumerate(grouped):
        low = start + number * step * width
        high = low + step * width - 1
        label = f"{low}" if low == high else f"{low}-{high}"
        console().print(f"{label:>13}  {'█' * round(50 * count / highest)} {count:,}")


def add_to(app: typer.Typer) -> None:
    """Make the commands known."""
    app.add_typer(tasks, name="tasks")
