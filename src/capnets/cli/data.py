"""`capnets data`: which data files there are, and where."""

from __future__ import annotations

from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import print_json, print_table

__all__ = ["data"]


def data(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare contents with checksums.")
    ] = False,
    fetch: Annotated[str | None, typer.Option(help="Download one file into the cache.")] = None,
    as_json: Json = False,
) -> None:
    """List the data files and where they were found."""
    from capnets.tasks.files import cache_folder, find, known

    if fetch:
        path = str(find(fetch))
        if as_json:
            print_json({"name": fetch, "path": path})
        else:
            typer.echo(f"{path} is present and intact.")
        return
    rows = [
        (f.file.name, f.status, f.path, f.file.terms, f.file.origin) for f in known(verify=verify)
    ]
    if as_json:
        keys = ("name", "status", "path", "terms", "origin")
        print_json(
            [dict(zip(keys, (r[0], r[1], r[2] and str(r[2]), *r[3:]), strict=True)) for r in rows]
        )
        return
    print_table(["file", "status", "terms", "origin"], [(r[0], r[1], r[3], r[4]) for r in rows])
    typer.echo(f"Looked for in CAPNETS_DATA, in {cache_folder()} and in /usr/share/datasets.")
