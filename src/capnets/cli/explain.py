"""`capnets explain`: what each instance of some sets added."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, console, loading, print_json

__all__ = ["add_to", "explain"]


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[str | None, typer.Argument(help="The sets, for a run on a file.")] = None,
    sets: Annotated[str, typer.Option(help="Which sets: numbers with commas between.")] = "0",
    orders: Annotated[
        int | None, typer.Option(help="Average over so many random orders.", min=1)
    ] = None,
    method: Annotated[str, typer.Option(help="added or shapley.")] = "added",
    output: Annotated[str | None, typer.Option(help="Which label or class, if several.")] = None,
    show: Annotated[
        str | None, typer.Option(help="The file's column that says what an instance is.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random orders.")] = 0,
    as_json: Json = False,
) -> None:
    """Show instance by instance what was added, and what was expected where that is known."""
    from capnets.explain.render.terminal import terminal_table
    from capnets.files import write_text
    from capnets.pages import explain_run

    with loading() as progress:
        found = explain_run(
            run, file, sets=sets, method=method, orders=orders, seed=seed, output=output,
            show=show, progress=progress,
        )  # fmt: skip
    if html is not None:
        write_text(html, found.page())
    if as_json:
        print_json(found.to_list())
        return
    console().print(found.about)
    console().print(found.explanation.meaning)
    for k in range(len(found.explanation)):
        console().print(terminal_table(found.explanation, k, look=found.look))
        if found.probabilities is not None:
            console().print(f"Probability of {found.output}: {found.probabilities[k]:.3f}")
    if html is not None:
        console().print(f"The page: {html}")


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(explain)
