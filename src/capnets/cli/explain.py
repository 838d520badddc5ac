"""`capnets explain`: show what each instance of some sets adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, Json, grouped
from capnets.cli.printing import console, loading, print_json, print_table
from capnets.errors import InputError

__all__ = ["explain"]


@grouped
def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    folders: FolderOptions,
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

    With --map, show the tiles that add most and least, and draw all tiles at their positions.
    """
    if maps is not None:
        if file is None or method != "added":
            raise InputError("--map needs a folder of features and shows added values only")
        data = folders.of(file, features)
        _map(run, data, maps, pixel, sets=sets, orders=orders, seed=seed, output=output)
        return
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


def _map(run: Path, data: Any, folder: Path, pixel: float | None, **asked: Any) -> None:
    """Write the maps of some sets, and list the tiles that add most and least."""
    from capnets.ingest import FeatureFolder
    from capnets.pages.explain_run import map_run

    if not isinstance(data, FeatureFolder):
        raise InputError("--map needs a folder of features: --features FOLDER")
    found, maps = map_run(run, data, **asked)
    console().print(found.source)
    console().print(found.meaning)
    for k in range(len(found)):
        total = found.predictions[k] - found.baselines[k]
        console().print(
            f"set {found.name(k)}: baseline {found.baselines[k]:.4g} + values {total:.4g} = "
            f"prediction {found.predictions[k]:.4g}"
        )
    for one in maps:
        rows = [(where, int(i), *map(float, one.coords[i]), float(one.values[i]))
                for where, tiles in zip(("top", "bottom"), one.extremes(), strict=True)
                for i in tiles]  # fmt: skip
        print_table(["", "tile", "x", "y", "added value"], rows, title=one.name)
        console().print("Written: " + ", ".join(map(str, one.save(folder, pixel=pixel))))
