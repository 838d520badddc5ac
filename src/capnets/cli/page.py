"""`capnets page` and `capnets play`: interactive pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.columns import FolderOptions
from capnets.cli.options import FeatureFiles, grouped
from capnets.cli.printing import console, epochs, loading

__all__ = ["page", "play"]


@grouped
def page(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders to show side by side, and the file or folder of features with the "
            "sets."
        ),
    ],
    folders: FolderOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "page.html"
    ),
    sets: Annotated[
        str | None,
        typer.Option(help="Names (or numbers) of sets, separated by commas.  [default: 12 sets]"),
    ] = None,
    show: Annotated[
        str | None, typer.Option(help="Column with the name or text of an instance.")
    ] = None,
    features: FeatureFiles = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "",
    runtime: Annotated[
        Path | None, typer.Option(help="Install the browser runtime from this npm package (.tgz).")
    ] = None,
) -> None:
    """Write an interactive page on which instances can be reordered, removed and added.

    The page is one file. It works offline and makes no requests.
    """
    from capnets.errors import InputError
    from capnets.files import write_text
    from capnets.pages.interactive import interactive_page
    from capnets.pages.runtime import install_runtime
    from capnets.runs import Run

    if runtime is not None:
        install_runtime(runtime)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist")
    runs = [Run(path) for path in paths if (path / "config.json").is_file()]
    files = [path for path in paths if not (path / "config.json").is_file()]
    if not runs or len(files) > 1:
        raise InputError(
            "give at least one run folder, and at most one file or folder with sets; no run: "
            + ", ".join(map(str, files))
        )
    data = folders.of(str(files[0]), features) if files else None
    with loading() as progress:
        text = interactive_page(runs, data, sets=sets, show=show, title=title, progress=progress)
    write_text(out, text)
    console().print(f"The page: {out.resolve()}")


def play(
    out: Annotated[Path, typer.Option("--out", "-o", help="For runs and page.")] = Path("demo"),
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open the interactive page of three networks on digits; train them first if necessary."""
    import webbrowser

    from capnets import demo

    names = demo.to_train(out)
    with epochs(", ".join(names), len(names) * demo.EPOCHS, quiet=not names) as progress:
        path = demo.play(out, progress=progress)
    console().print(f"The page: {path.resolve()}")
    if open_page:
        webbrowser.open(path.resolve().as_uri())
