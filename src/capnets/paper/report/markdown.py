"""Write the report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capnets.paper.claims import Claim
from capnets.paper.compared import Compared, Shown
from capnets.paper.names import BEYOND
from capnets.paper.report import trained
from capnets.paper.report.missing import Missing
from capnets.paper.report.summary import PROTOCOLS, Part, Summary
from capnets.paper.report.texts import (
    EQUAL,
    QUESTIONS,
    best_of,
    case_count,
    columns_of,
    exact_of,
    listed,
    name_of,
    ours_of,
    paper_of,
    progress_of,
)

__all__ = ["claims_table", "to_markdown"]

MARKS = {"better": "▲", "worse": "▽", "equal": "=", "differs": "≠", None: ""}


def to_markdown(summary: Summary) -> str:
    """Return the report; numbers of ours first, printed ones in parentheses."""
    parts = [
        "# The paper, reproduced",
        "Ours ± standard deviation over seeds, then the paper's number in parentheses; ▲ lower "
        f"error than the paper, ▽ higher, = equal, ≠ not equal where it should be. {EQUAL}",
        *(f"**{protocol}**: {meaning}" for protocol, meaning in PROTOCOLS.items()),
        "## Claims",
        claims_table(summary),
        f"## {QUESTIONS['paper']}",
        trained.paper_recipe(),
        *_part(summary, summary.paper, paper=True),
        f"## {QUESTIONS['ours']}",
        _statements(summary.beyond[:1], summary.held_out_beyond[:1]),
        *_part(summary, summary.ours, paper=False),
        f"## {QUESTIONS['beyond']}",
        _statements(summary.beyond[1:], summary.held_out_beyond[1:]),
    ]
    for section in summary.beyond_sections:
        parts += [f"### {section.shared.table.title}", _beyond(section.shared)]
    parts += ["## Missing", _missing(summary.missing), "## Provenance", *_made(summary)]
    return "\n\n".join(filter(None, parts)) + "\n"


def claims_table(summary: Summary) -> str:
    """Return the claims: in the paper, with its recipe, with our best recipe."""
    head = ("claim", "the paper", "the paper's recipe here", "verdict", "our best recipe here",
            "verdict", "case")  # fmt: skip
    rows = [
        (
            paper.says,
            case_count(paper.paper),
            case_count(paper.ours),
            paper.verdict,
            case_count(ours.ours),
            ours.verdict,
            paper.counted,
        )
        for paper, ours in zip(summary.paper.claims, summary.ours.claims, strict=True)
    ]
    return _rows(head, rows)


def _part(summary: Summary, part: Part, *, paper: bool) -> list[str]:
    parts = [trained.trained(part), *(f"- {r}" for r in trained.recipes(summary, paper=paper))]
    for section in part.sections:
        table = section.shared.table
        parts += [f"### {table.number}: {table.title}", table.shows, progress_of(section.shared)]
        if not columns_of(section.shared):
            parts.append("Drawn in index.html.")
        elif section.shared.done:
            parts.append(_table(section.shared, with_paper=True))
            if section.by_protocol:
                parts += ["Held-out images:", _table(section.held_out, with_paper=False)]
        parts += [f"> {remark}" for remark in section.remarks]
    return parts


def _statements(claims: Iterable[Claim], others: Iterable[Claim]) -> str:
    rows = [
        (a.says, a.verdict, case_count(a.ours), case_count(b.ours), a.counted)
        for a, b in zip(claims, others, strict=True)
    ]
    return _rows(("statement", "verdict", "shared", "held-out", "case"), rows)


def _beyond(compared: Compared) -> str:
    columns = columns_of(compared)
    best = best_of(compared)
    rows = [["best of the paper's networks", *(best.get(column, "") for column in columns)]]
    for row in (r for r in compared.rows if r.split()[0] in BEYOND):
        shown = [compared.by_place.get((row, column)) for column in columns]
        rows.append([name_of(row), *(_cell(s, with_paper=False) for s in shown)])
    return _rows(["", *columns], rows)


def _table(compared: Compared, *, with_paper: bool) -> str:
    columns = columns_of(compared)
    rows = [[row, *numbers] for row, numbers in exact_of(compared).items()]
    for row in (row for row in compared.rows if row not in compared.beyond_rows):
        shown = [compared.by_place.get((row, column)) for column in columns]
        rows.append([name_of(row), *(_cell(s, with_paper=with_paper) for s in shown)])
    return _rows(["", *columns], rows)


def _cell(shown: Shown | None, *, with_paper: bool) -> str:
    if shown is None:
        return ""
    ours = ours_of(shown)
    if not with_paper:
        return ours
    printed = paper_of(shown)
    return " ".join(filter(None, [ours, f"({printed})" if printed else "", MARKS[shown.verdict]]))


def _missing(missing: Iterable[Missing]) -> str:
    rows = [
        (
            f"{one.number}: {one.title}",
            one.recipe,
            f"{one.numbers} of {one.printed}",
            str(one.runs),
            "?" if one.hours is None else f"{one.hours:.1f}",
            one.reason,
        )
        for one in missing
    ]
    return _rows(("table", "recipe", "numbers", "runs", "core hours", "reason"), rows)


def _made(summary: Summary) -> list[str]:
    lines = [f"{summary.runs} trained networks, {summary.hours:.1f} core hours."]
    if summary.stale:
        lines.append(
            f"Left out: {summary.stale} records made with an earlier recipe or measurement; "
            "`capnets reproduce` makes them again."
        )
    lines += [f"- {listed(made)}" for made in summary.made]
    if summary.failed:
        head = ("network", "task", "seed", "differs in", "failure", "reason")
        rows = [
            (name_of(f.model), f.task, str(f.seed), f.differs, f.failure, f.reason)
            for f in summary.failed
        ]
        lines.append(_rows(head, rows))
    return lines


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
