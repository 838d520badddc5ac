"""`capnets report`: compare results with the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.options import Json
from capnets.cli.printing import print_json, print_table

__all__ = ["report"]


def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders of `capnets reproduce`.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output folder.", show_default="RESULTS/report"),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Scale of all tables: smoke, small or full.",
            show_default="the largest begun of each table",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare results with the paper: one HTML page, Markdown and JSON."""
    from capnets.paper.report import summarise, write_report
    from capnets.paper.report.texts import case_count
    from capnets.paper.results import Results
    from capnets.paper.scales import find_scale

    size = None if scale is None else find_scale(scale).name
    summary = summarise(*(Results(folder).read() for folder in results), scale=size)
    paths = write_report(summary, out or results[0] / "report")
    if as_json:
        document = summary.to_dict()  # all of it is in report.json
        names = ("claims", "runs", "stale", "hours", "failed")
        print_json(
            {"written": [str(path) for path in paths]} | {name: document[name] for name in names}
        )
        return
    print_table(
        ["claim of the paper", "the paper", "with its recipe", "with ours"],
        [
            (
                paper.says,
                case_count(paper.paper),
                f"{case_count(paper.ours)} {paper.verdict}",
                f"{case_count(ours.ours)} {ours.verdict}",
            )
            for paper, ours in zip(summary.paper.claims, summary.ours.claims, strict=True)
        ],
    )
    if summary.stale:
        typer.echo(
            f"Left out: {summary.stale} records made with an earlier recipe or measurement; "
            "`capnets reproduce` makes them again."
        )
    typer.echo("Written: " + ", ".join(str(path) for path in paths))
