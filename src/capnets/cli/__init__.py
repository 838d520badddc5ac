"""The command line: parse, call one library function, print.

Heavy imports happen inside the commands, so that `capnets --help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import entry_points

import typer

from capnets.cli import (
    data,
    demo,
    evaluate,
    explain,
    export,
    models,
    page,
    predict,
    serve,
    task,
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
for command in (demo.demo, models.models, data.data, train.train, predict.predict):
    app.command()(command)
for command in (evaluate.evaluate, explain.explain, page.page, page.play, export.export):
    app.command()(command)
for command in (serve.serve, tune.tune):
    app.command()(command)
app.add_typer(task.task, name="task")
for extension in entry_points(group="capnets.commands"):
    try:
        extension.load()(app)
    except ImportError as error:  # a broken extension must not disable the other commands
        problem = f"Warning: commands of {extension.value} are missing: {error}"
        typer.secho(problem, fg="yellow", err=True)


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
    """Run the command line; print errors as one sentence, without a traceback."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (InputError, OSError) as error:
        if os.environ.get("CAPNETS_TRACEBACK"):
            raise
        message = str(error)
        if isinstance(error, OSError) and error.filename:
            message = f"{error.strerror}: {error.filename}"
        _stop(f"Error: {message}", 2)
    except Exception as error:  # no traceback unless it is asked for
        if os.environ.get("CAPNETS_TRACEBACK"):
            raise
        reason = str(error).strip().partition("\n")[0]
        _stop(
            f"Unexpected error ({type(error).__name__}): {reason or 'no message'}. "
            "CAPNETS_TRACEBACK=1 shows where it occurred; please report it.",
            1,
        )


def _stop(message: str, code: int) -> None:
    typer.secho(message, fg="red", err=True)
    sys.exit(code)


def _show_warning(message: Warning | str, *where: object, **how: object) -> None:
    typer.secho(f"Warning: {message}", fg="yellow", err=True)
