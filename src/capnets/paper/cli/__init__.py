"""Commands of the reproduction: `capnets reproduce` and `capnets report`."""

from __future__ import annotations

import typer

from capnets.paper.cli import report, reproduce

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register the commands; called through the entry point group `capnets.commands`."""
    for command in (reproduce, report):
        command.add_to(app)
