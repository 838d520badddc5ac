"""`capnets models`: the networks that can be built by name."""

from __future__ import annotations

from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import print_json, print_table

__all__ = ["models"]


def models(
    features: Annotated[int, typer.Option(help="Features of an instance.")] = 64,
    hidden: Annotated[int, typer.Option(help="Hidden dimensions.")] = 32,
    layers: Annotated[int, typer.Option(help="Layers of the encoder: 2 or 3 in the paper.")] = 3,
    as_json: Json = False,
) -> None:
    """List the networks with their numbers of parameters."""
    from capnets.models import MODELS, ModelSpec, parameters

    rows = []
    for name, entry in MODELS.items():
        model = ModelSpec(name, in_features=features, hidden=hidden, layers=layers).build(seed=0)
        rows.append(
            {
                "name": name,
                "label": entry.label,
                "parameters": parameters(model),
                "additive": model.additive,
                "ordered": model.ordered,
                "about": entry.about,
            }
        )
    if as_json:
        print_json(rows)
    else:
        print_table(
            ["model", "parameters", "added values", "order matters", "what it does"],
            [
                (
                    r["name"],
                    r["parameters"],
                    "in one pass" if r["additive"] else "from prefixes",
                    "yes" if r["ordered"] else "no",
                    r["about"],
                )
                for r in rows
            ],
        )
