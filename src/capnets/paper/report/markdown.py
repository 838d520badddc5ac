"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capnets.paper.claims import Claim
from capnets.paper.compare import Compared, Shown
from capnets.paper.report.summary import PROTOCOLS, SCALES, Summary
from capnets.paper.report.texts import (
    EQUAL,
    NOT_IN_THE_PAPER,
    case_count,
    cases_of,
    columns_of,
    exact_of,
    listed,
    name_of,
    ours_of,
    paper_of,
    progress_of,
)
from capnets.paper.report.trained import NOT_NETWORKS, trained

__all__ = ["to_markdown"]

MARKS = {"better": "▲", "worse": "▽", "equal": "=", "differs": "≠", None: ""}


def to_markdown(summary: Summary) -> str:
    """The whole report; ours first, the paper's number in parentheses."""
    parts = [
        "# The paper's tables and figures, reproduced",
        "Ours ± deviation over seeds, then the paper's number in parentheses; ▲ better, "
        f"▽ worse, = equal, ≠ not equal where it should be. "
        f"{EQUAL} {NOT_NETWORKS}",
        "## Claims of the paper",
        _claims(summary.claims, summary.held_out_claims),
        "## Beyond the paper",
        _claims(summary.beyond, summary.held_out_beyond),
    ]
    for protocol, meaning in PROTOCOLS.items():
        parts.append(f"**{protocol}**: {meaning}")
    if words := trained(summary):
        parts += ["### How ours were trained", *words]
    parts += ["## What was run", SCALES]
    for section in summary.sections:
        table = section.shared.table
        parts += [f"## {table.number}: {table.title}", table.shows, progress_of(section.shared)]
        if not columns_of(section.shared):
            parts.append("Drawn in index.html.")
        elif section.shared.done:
            parts.append(_table(section.shared, with_paper=True))
            if section.by_protocol:
                parts += ["Held-out images:", _table(section.held_out, with_paper=False)]
        parts += [f"> {remark}" for remark in section.remarks]
    parts += ["## How", *_how(summary)]
    return "\n\n".join(parts) + "\n"


def _claims(claims: Iterable[Claim], others: Iterable[Claim]) -> str:
    rows = []
    for shared, held_out in zip(claims, others, strict=True):
        ours, paper = case_count(shared)
        rows.append(
            (shared.says, f"**{shared.verdict}**", ours, case_count(held_out)[0], paper,
             cases_of(shared))
        )  # fmt: skip
    return _rows(("claim", "here", "shared", "held-out", "the paper", "cases"), rows)


def _table(compared: Compared, *, with_paper: bool) -> str:
    columns = columns_of(compared)
    rows = [[row, *jobs] for row, jobs in exact_of(compared).items()]
    for row in compared.rows:
        shown = [compared.by_place.get((row, column)) for column in columns]
        rows.append([_head(row, compared), *(_cell(s, with_paper=with_paper) for s in shown)])
    return _rows(["", *columns], rows)


def _head(row: str, compared: Compared) -> str:
    return f"{name_of(row)} ({NOT_IN_THE_PAPER})" if row in compared.beyond_rows else name_of(row)


def _cell(shown: Shown | None, *, with_paper: bool) -> str:
    if shown is None:
        return ""
    ours = ours_of(shown)
    if not with_paper:
        return ours
    printed = paper_of(shown)
    return " ".join(filter(None, [ours, f"({printed})" if printed else "", MARKS[shown.verdict]]))


def _how(summary: Summary) -> list[str]:
    lines = [f"{summary.runs} networks were trained in {summary.hours:.1f} hours of one core."]
    if summary.stale:
        lines.append(
            f"{summary.stale} records that were made with an earlier recipe or measurement are "
            "left out; `capnets reproduce` makes them again."
        )
    if summary.longest is not None:
        lines.append(
            "The longest run of a recurrent network at full scale took "
            f"{summary.longest / 60:.1f} minutes of one core."
        )
    for recipe in summary.recipes:
        lines.append(f"- recipe {recipe.name}, {recipe.runs} runs: {listed(recipe.settings)}")
    lines += [f"- {listed(made)}" for made in (*summary.versions, *summary.machines)]
    if summary.failed:
        head = ("network", "task", "seed", "differs in", "failure", "reason")
        lines.append(
            _rows(
                head,
                [
                    (name_of(f.model), f.task, str(f.seed), f.differs, f.failure, f.reason)
                    for f in summary.failed
                ],
            )
        )
    return lines


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(job.replace("|", "\\|") for job in row) + " |" for row in rows]
    return "\n".join(lines)
