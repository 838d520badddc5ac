"""`capnets explain`: show what each instance of some sets adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import console, loading, print_json

__all__ = ["explain"]


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[str | None, typer.Argument(help="The sets, for a run on a file.")] = None,
    sets: Annotated[
        str | None,
        typer.Option(help="Names (or numbers) of sets, separated by commas.  [default: the first]"),
    ] = None,
    orders: Annotated[
        int | None, typer.Option(help="Number of random orders to average over.", min=1)
    ] = None,
    method: Annotated[str, typer.Option(help="added or shapley.")] = "added",
    output: Annotated[
        str | None, typer.Option(help="Label or class to explain, if there are several.")
    ] = None,
    show: Annotated[
        str | None, typer.Option(help="Column with the name or text of an instance.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the orders.")] = 0,
    as_json: Json = False,
) -> None:
    """Show what each instance adds, and the true value where it is known."""
    from capnets.explain.render.records import records
    from capnets.explain.render.terminal import terminal_table
    from capnets.files import write_text
    from capnets.pages import explain_run

    with loading() as progress:
        found = explain_run(
            run, file, sets=sets, method=method, orders=orders, seed=seed, output=output,
            show=show, progress=progress,
        )  # fmt: skip
    if html is not None:
        write_text(html, found.to_html())
    if as_json:
        print_json(records(found))
        return
    console().print(found.source)
    console().print(found.meaning)
    for k in range(len(found)):
        console().print(terminal_table(found, k))
    if html is not None:
        console().print(f"The page: {html}")
