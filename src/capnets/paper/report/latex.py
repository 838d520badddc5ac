"""The report's tables as LaTeX, to be included in a document that uses booktabs and xcolor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capnets.paper.claims import Claim
from capnets.paper.compare import Compared, Shown
from capnets.paper.report.summary import Section, Summary
from capnets.paper.report.texts import (
    EQUAL,
    case_count,
    columns_of,
    exact_of,
    listed,
    name_of,
    ours_of,
    paper_of,
    progress_of,
)
from capnets.paper.report.trained import NOT_NETWORKS, trained

__all__ = ["to_latex"]

COLOURS = {"better": "teal", "worse": "red", "differs": "orange"}
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "²": r"\textsuperscript{2}",
        "±": r"$\pm$",
        "Δ": r"$\Delta$",
        "–": "--",
        "…": r"\dots{}",
        "’": "'",
        "“": "``",
        "”": "''",
    }
)


def to_latex(summary: Summary) -> str:
    """The claims, every table that was run under both protocols, and how it was all made."""
    parts = [
        "% needs \\usepackage{booktabs,xcolor}; ours, then the paper's number in grey",
        "",
        _claims(summary.claims, summary.held_out_claims, "Claims of the paper.", "claims"),
        _claims(summary.beyond, summary.held_out_beyond, "Beyond the paper.", "beyond"),
    ]
    if words := trained(summary):
        parts.append(_paragraph("How ours were trained", [*words, NOT_NETWORKS, EQUAL]))
    for section in summary.sections:
        parts += _section(section)
    parts.append(_paragraph("Made with", map(listed, summary.versions)))
    if summary.failed:
        parts.append(_failures(summary))
    return "\n".join(parts)


def _claims(claims: Iterable[Claim], others: Iterable[Claim], caption: str, label: str) -> str:
    rows = []
    for shared, held_out in zip(claims, others, strict=True):
        ours, paper = case_count(shared)
        rows.append((shared.says, shared.verdict, ours, case_count(held_out)[0], paper))
    return _environment(
        "p{0.4\\linewidth}p{0.15\\linewidth}rrr",
        ("claim", "here", "shared", "held-out", "paper"),
        [_row(map(_text, row)) for row in rows],
        caption=caption,
        label=label,
    )


def _section(section: Section) -> list[str]:
    if not section.shared.done or not columns_of(section.shared):
        return []
    tables = [_table(section.shared, remarks=section.remarks, with_paper=True)]
    if section.by_protocol:
        tables.append(_table(section.held_out, remarks=(), with_paper=False))
    return tables


def _table(compared: Compared, *, remarks: Sequence[str], with_paper: bool) -> str:
    table, columns = compared.table, columns_of(compared)
    rows = [_row([_text(row), *jobs]) for row, jobs in exact_of(compared).items()]
    for row in compared.rows:
        shown = [compared.by_place.get((row, column)) for column in columns]
        jobs = [_cell(one, with_paper=with_paper) for one in shown]
        # A rule above the networks that the paper does not have.
        rule = "\\midrule\n" if row in compared.beyond_rows[:1] else ""
        rows.append(rule + _row([_text(name_of(row)), *jobs]))
    return _environment(
        "l" + "r" * len(columns),
        ("", *columns),
        rows,
        caption=f"{table.number}: {table.shows} {_summary(compared)}",
        label=table.name if with_paper else f"{table.name}-{compared.protocol}",
        remarks=remarks,
    )


def _summary(compared: Compared) -> str:
    text = f"Protocol {compared.protocol}. {progress_of(compared)}"
    return text + (" A rule parts them from the paper's." if compared.beyond else "")


def _cell(shown: Shown | None, *, with_paper: bool) -> str:
    if shown is None:
        return ""
    ours = _text(ours_of(shown))
    if not with_paper:
        return ours
    if shown.verdict in COLOURS:
        ours = f"\\textcolor{{{COLOURS[shown.verdict]}}}{{{ours}}}"
    printed = paper_of(shown)
    return ours + (f" \\textcolor{{gray}}{{{_text(printed)}}}" if printed else "")


def _failures(summary: Summary) -> str:
    rows = [
        (name_of(f.model), f.task, str(f.seed), f.differs, f.failure, f.reason)
        for f in summary.failed
    ]
    return _environment(
        "lllllp{0.3\\linewidth}",
        ("network", "task", "seed", "differs in", "failure", "reason"),
        [_row(map(_text, row)) for row in rows],
        caption="Runs that failed.",
        label="failed",
    )


def _paragraph(title: str, sentences: Iterable[str]) -> str:
    return f"\\paragraph{{{title}.}} {_text(' '.join(sentences))}\n"


def _row(jobs: Iterable[str]) -> str:
    return " & ".join(jobs)


def _environment(
    columns: str,
    head: Sequence[str],
    rows: Iterable[str],
    *,
    caption: str,
    label: str,
    remarks: Sequence[str] = (),
) -> str:
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_text(caption)}}}\\label{{tab:{label}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{_row(map(_text, head))} \\\\",
            "\\midrule",
            *(f"{row} \\\\" for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            *(f"\n{{\\footnotesize {_text(remark)}\\par}}" for remark in remarks),
            "\\end{table}",
            "",
        ]
    )


def _text(text: str) -> str:
    return text.translate(SPECIAL)
