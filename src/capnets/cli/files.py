"""Options of commands that read a user's own files, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.errors import InputError

if TYPE_CHECKING:
    from capnets.ingest import Columns

__all__ = [
    "FOR_TABLES", "Categories", "Classify", "Features", "Group", "Missing", "Order", "SetColumn",
    "Target", "Text", "Weight", "columns", "is_file", "refuse",
]  # fmt: skip

#: Options that say what columns mean.
FOR_TABLES = (
    "set_column", "target", "features", "categories", "order_column", "group_column",
    "weight_column", "text_column", "missing",
)  # fmt: skip

SetColumn = Annotated[str | None, typer.Option("--set-column", help="Says which set a row is in.")]
Target = Annotated[list[str] | None, typer.Option(help="A column to predict; repeat for several.")]
Features = Annotated[
    list[str] | None, typer.Option(help="A feature column or pattern.", show_default="all others")
]
Categories = Annotated[
    list[str] | None, typer.Option(help="A feature column or pattern that holds categories.")
]
Order = Annotated[str | None, typer.Option("--order-column", help="Instances are read by it.")]
Group = Annotated[
    str | None, typer.Option("--group-column", help="Sets of a group are never split.")
]
Text = Annotated[
    str | None,
    typer.Option(
        "--text-column", help="Text: a sentence per row, or without --set-column a document."
    ),
]
Weight = Annotated[str | None, typer.Option("--weight-column", help="The weight of a set.")]
Missing = Annotated[str, typer.Option(help="Missing values: refuse, mean (of all rows) or zero.")]
Classify = Annotated[
    bool,
    typer.Option(
        "--classify", help="A target of numbers names classes; several are labels of 0 and 1."
    ),
]


def is_file(source: str) -> bool:
    """Whether a source is a file of the user's, not a task."""
    from capnets.ingest import SUFFIXES

    return Path(source).suffix in SUFFIXES or Path(source).is_file()


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that were typed and would have no effect."""
    typed = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is not None and source.name == "COMMANDLINE":
            typed.append(option.opts[0])
    if typed:
        raise InputError(f"{', '.join(typed)}: {why}")


def columns(
    context: typer.Context,
    source: str,
    set_column: str | None,
    target: list[str] | None,
    **others: Any,
) -> Columns | None:
    """The meaning of a file's columns; None for .npz, which has none."""
    if Path(source).suffix == ".npz":
        refuse(
            context, FOR_TABLES, "for tables only; an .npz file has X, offsets and y, no columns"
        )
        return None
    if (set_column is None and not others.get("text")) or not target:
        raise InputError(
            f"{source}: name its columns with --set-column … and --target …, "
            "the set that a row belongs to and what is to be predicted "
            "(documents need no set column: --text-column …)"
        )
    from capnets.ingest import Columns

    chosen: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in others.items() if v
    }
    return Columns(set=set_column or "", target=tuple(target), **chosen)
