"""The command line: parse, call one library function, print.

Heavy imports happen inside the commands, so that `capnets --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points

import typer

from capnets.cli import (
    data,
    demo,
    evaluate,
    explain,
    export,
    models,
    predict,
    tasks,
    train,
    tune,
)
from capnets.errors import InputError

__all__ = ["app", "main"]

app = typer.Typer(
    name="capnets",
    help="Learn what each instance adds to the label of its set.",
    epilog="Begin with: capnets demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, models, tasks, data, train, predict, evaluate, explain, export, tune):
    command.add_to(app)
for extension in entry_points(group="capnets.commands"):
    extension.load()(app)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True
    ),
) -> None:
    if version:
        from capnets import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; what people did wrong is said without a traceback."""
    try:
        app()
    except (InputError, OSError) as error:
        if os.environ.get("CAPNETS_TRACEBACK"):
            raise
        message = str(error)
        if isinstance(error, OSError) and error.filename:
            message = f"{error.strerror}: {error.filename}"
        typer.secho(f"Error: {message}", fg="red", err=True)
        sys.exit(2)
