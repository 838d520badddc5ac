"""`capnets demo`: a demonstration on digits that ship with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import console, epochs, print_json, print_table

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of page and runs.")] = Path(
        "demo"
    ),
    n_epochs: Annotated[int | None, typer.Option("--epochs", help="Number of epochs.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed for weights and data.")] = 0,
    as_json: Json = False,
) -> None:
    """Train a GRU and a C-DeepSet to sum distinct digits; compare what each digit adds."""
    from capnets import demo as demonstration

    if not as_json:
        console().print(demonstration.ABOUT)
    many = len(demonstration.NETWORKS) * (n_epochs or demonstration.EPOCHS)
    with epochs(", ".join(demonstration.NETWORKS), many, quiet=as_json) as progress:
        result = demonstration.run(out, epochs=n_epochs, seed=seed, progress=progress)
    if as_json:
        print_json(result.to_dict())
        return
    print_table(
        ["network", "labels right", "values off by", "values off by, digits never seen"],
        [
            (r.model, f"{r.right_seen:.0%}", f"{r.values_seen:.2f}", f"{r.values_unseen:.2f}")
            for r in result.networks
        ],
        title="Both learn the labels of new sets; one learns what each digit adds:",
    )
    console().print(demonstration.LIMIT)
    print_table(
        ["digit", "adds", "c-deepset", "gru (differences)"],
        [
            (i.digit, round(i.expected), round(i.capacity, 2), round(i.gru, 2))
            for i in result.example
        ],
        title=f"A new set, digit by digit (label {result.label:g}):",
    )
    console().print(f"The page: {result.page}")
    console().print("Move digits yourself: capnets play")
