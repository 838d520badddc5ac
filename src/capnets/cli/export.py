"""`capnets export`: a trained network as ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import print_json, print_table

__all__ = ["export"]


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    onnx: Annotated[Path, typer.Option("--onnx", help="The folder to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    as_json: Json = False,
) -> None:
    """Write a run as ONNX graphs, and check that they agree with the network."""
    from capnets.export import export as write

    card = write(run, onnx, force=force)
    if as_json:
        print_json(card.to_dict())
        return
    print_table(
        ["graph", "inputs", "outputs"],
        [
            (g["file"], ", ".join(g["inputs"]), ", ".join(g["outputs"]))
            for g in card.graphs.values()
        ],
    )
    typer.echo(f"The graphs are in {onnx}; README.md there says how to use them.")
    typer.echo(
        f"The largest difference from the network is {card.difference['largest']:.1g} "
        f"({card.difference['allowed']:g} is allowed)."
    )
