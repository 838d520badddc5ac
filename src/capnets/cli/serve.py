"""`capnets serve`: networks as an HTTP service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import loading

__all__ = ["serve"]


def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Run folders or exports, and a file with sets for the page."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token of clients.  [default: variable CAPNETS_TOKEN]"),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the interactive page at /; a file implies it.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Time limit of a request.")] = 30.0,
    waiting: Annotated[int, typer.Option(help="Maximum number of requests in progress.")] = 256,
    streams: Annotated[int, typer.Option(help="Maximum number of open streams.")] = 1024,
) -> None:
    """Serve networks over HTTP: the KServe v2 protocol, explanations, selections and streams."""
    from capnets.errors import InputError
    from capnets.serve import Limits
    from capnets.serve import serve as run

    token = os.environ.get("CAPNETS_TOKEN")
    if token_file is not None:
        token = token_file.read_text(encoding="utf-8").strip()
    folders = [path for path in paths if not path.is_file()]
    files = [path for path in paths if path.is_file()]
    if len(files) > 1:
        raise InputError("give at most one file with sets")
    shown = None
    if page or files:
        if token:
            raise InputError("a browser cannot send the token, so a service with one has no page")
        shown = _page(folders, files[0] if files else None)
    run(
        folders,
        host=host,
        port=port,
        token=token or None,
        limits=Limits(seconds=seconds, waiting=waiting, streams=streams),
        page=shown,
        announce=lambda address: typer.echo(
            f"Serving at {address} (documentation: {address}/docs)"
        ),
    )


def _page(folders: list[Path], file: Path | None) -> str:
    from capnets.pages.interactive import interactive_page
    from capnets.runs import Run
    from capnets.serve.network import network_names

    with loading() as progress:
        return interactive_page(
            [Run(folder) for folder in folders],
            file,
            service=network_names(folders),
            progress=progress,
        )
