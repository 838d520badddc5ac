"""Commands of the reproduction: `capnets reproduce` and `capnets report`."""

from __future__ import annotations

import typer

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register the commands; called through the entry point group `capnets.commands`."""
    # Imported here: these modules import `capnets.cli`, which calls this function.
    from capnets.paper.cli.report import report
    from capnets.paper.cli.reproduce import reproduce

    app.command()(report)
    app.command()(reproduce)
