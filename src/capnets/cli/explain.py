"""`capnets explain`: show what each instance of some sets adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, Json, grouped
from capnets.cli.printing import console, loading, print_json
from capnets.errors import InputError

__all__ = ["explain"]


@grouped
def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    folders: FolderOptions,
    file: Annotated[
        str | None, typer.Argument(help="The sets, for a run on a file or folder.")
    ] = None,
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
    features: FeatureFiles = None,
    maps: Annotated[
        Path | None,
        typer.Option("--map", help="For a feature folder: write maps (PNG, GeoJSON) here."),
    ] = None,
    pixel: Annotated[
        float | None, typer.Option(help="Micrometres per pixel, if coordinates are in micrometres.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the orders.")] = 0,
    as_json: Json = False,
) -> None:
    """Show what each instance adds, and the true value where it is known.

    For a feature folder, list the tiles that add most and least. --html draws all tiles at their
    places, --map writes the map of each file.
    """
    from capnets.explain.render.records import records
    from capnets.explain.render.terminal import terminal_table
    from capnets.files import write_text
    from capnets.ingest import FeatureFolder
    from capnets.pages import explain_run

    data = None if file is None else folders.of(file, features)
    if maps is not None and not isinstance(data, FeatureFolder):
        raise InputError("--map needs a folder of features: capnets explain RUN FOLDER --map OUT")
    with loading() as progress:
        found = explain_run(
            run, data, sets=sets, method=method, orders=orders, seed=seed, output=output,
            show=show, progress=progress,
        )  # fmt: skip
    written = []
    if maps is not None:
        written = [path for one in found.maps() for path in one.save(maps, pixel=pixel)]
    if html is not None:
        write_text(html, found.to_html())
        written.append(html)
    if as_json:
        print_json(records(found))
        return
    console().print(found.source)
    console().print(found.meaning)
    for k in range(len(found)):
        console().print(terminal_table(found, k))
    if written:
        console().print("Written: " + ", ".join(map(str, written)))
