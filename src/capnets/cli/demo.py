"""`capnets demo`: the main job in two minutes, on data that ships with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, console, epochs, print_json, print_table

__all__ = ["add_to", "demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="For page and runs.")] = Path("demo"),
    n_epochs: Annotated[int | None, typer.Option("--epochs", help="Fewer train faster.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Train a GRU and a C-GRU to sum distinct digits, and see what each digit added."""
    from capnets import demo as demonstration

    if not as_json:
        console().print(demonstration.ABOUT)
    with epochs("gru, c-gru", 2 * (n_epochs or demonstration.EPOCHS), quiet=as_json) as progress:
        result = demonstration.run(out, epochs=n_epochs, seed=seed, progress=progress)
    if as_json:
        print_json(result.to_dict())
        return
    print_table(
        ["network", "squared error", "right", "error of added values", "error, seen digits"],
        [
            (
                r.model,
                round(r.mse, 2),
                f"{r.accuracy:.0%}",
                round(r.added_value_error, 2),
                round(r.mse_seen, 3),
            )
            for r in result.networks
        ],
        title="On new sets of digits that neither network was trained on:",
    )
    print_table(
        ["digit", "added value", "expected", "running sum"],
        [
            (i.digit, round(i.added_value, 2), round(i.expected), round(i.running_sum, 2))
            for i in result.example
        ],
        title=f"One of these sets, read digit by digit by the C-GRU (label {result.label:g}):",
    )
    console().print(f"The same with pictures: {result.page}")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(demo)
