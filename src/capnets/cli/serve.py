"""`capnets serve`: networks as an HTTP service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["add_to", "serve"]


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of exports.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token of clients.  [default: variable CAPNETS_TOKEN]"),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time limit of a request.")] = 30.0,
    waiting: Annotated[int, typer.Option(help="Maximum number of requests in progress.")] = 256,
    streams: Annotated[int, typer.Option(help="Maximum number of open streams.")] = 1024,
) -> None:
    """Serve networks over HTTP: the KServe v2 protocol, explanations, selections and streams."""
    from capnets.serve import Limits
    from capnets.serve import serve as run

    token = os.environ.get("CAPNETS_TOKEN")
    if token_file is not None:
        token = token_file.read_text(encoding="utf-8").strip()
    run(
        runs,
        host=host,
        port=port,
        token=token or None,
        limits=Limits(seconds=seconds, waiting=waiting, streams=streams),
        announce=lambda address: typer.echo(
            f"Serving at {address} (documentation: {address}/docs)"
        ),
    )


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(serve)
