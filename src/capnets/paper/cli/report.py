"""`capnets report`: what was found beside what the paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.printing import Json, print_json, print_table

__all__ = ["add_to", "report"]


def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders of `capnets reproduce`.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to.", show_default="RESULTS/report")
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Show all tables at this scale: smoke, small or full.",
            show_default="of each table the largest begun",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Show all tables with this recipe: muon, fast or paper.",
            show_default="of each table the first begun",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the paper's tables with ours: one HTML page, Markdown, LaTeX and JSON."""
    from capnets.paper.report import summarise, write_report
    from capnets.paper.report.texts import case_count
    from capnets.paper.results import Results
    from capnets.paper.scales import every_scale, find_scale

    size = None if scale is None else find_scale(scale)
    scales = [s for s in every_scale(recipe) if size is None or s.name == size.name]
    summary = summarise(*(Results(folder).read() for folder in results), scales=scales)
    paths = write_report(summary, out or results[0] / "report")
    if as_json:
        # Of all that is said, what the table below says; everything is in report.json.
        told = summary.to_dict()
        print_json(
            {"written": [str(path) for path in paths], "claims": told["claims"]}
            | {name: told[name] for name in ("runs", "stale", "hours", "failed")}
        )
        return
    print_table(
        ["claim of the paper", "here", "cases", "the paper's numbers"],
        [(claim.says, claim.verdict, *case_count(claim)) for claim in summary.claims],
    )
    if summary.stale:
        typer.echo(
            f"{summary.stale} records were made with an earlier recipe or measurement and are left "
            "out; `capnets reproduce` makes them again."
        )
    typer.echo("Written: " + ", ".join(str(path) for path in paths))


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(report)
