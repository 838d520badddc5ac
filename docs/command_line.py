"""Write the reference of the command line from the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from capnets.cli import app

__all__ = ["write"]


def write(path: Path) -> None:
    """Write one section per command."""
    lines = ["# Command line", "", "Every command has `--help`.", ""]
    for name, command in _commands(typer.main.get_command(app), "capnets"):
        lines += [f"## {name}", "", *_section(name, command), ""]
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _commands(command: Any, name: str) -> list[tuple[str, Any]]:
    # Some versions of typer bring a copy of click, so that types cannot be compared with click's.
    if not hasattr(command, "commands"):
        return [(name, command)]
    found = []
    for word, child in command.commands.items():
        if not child.hidden:
            found += _commands(child, f"{name} {word}")
    return found


def _section(name: str, command: Any) -> list[str]:
    context = command.context_class(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [(command.help or "").split("\f")[0].strip(), "", f"    {name} {usage}", ""]
    rows = [p.get_help_record(context) for p in command.params]
    if any(rows):
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(row[0])}` | {_escaped(_cell(row[1]))} |" for row in rows if row]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")
