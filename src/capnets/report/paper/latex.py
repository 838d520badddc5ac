"""The report's tables as LaTeX, to be included in a document that uses booktabs and xcolor."""

from __future__ import annotations

from capnets.paper.compare import Compared, Shown
from capnets.report.paper.summary import Section, Summary
from capnets.report.paper.texts import case_count, name_of, ours_of, paper_of, progress_of

__all__ = ["to_latex"]

COLOURS = {"better": "teal", "worse": "red"}
SPECIAL = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "±": r"$\pm$", "–": "--", "…": r"\dots{}"}
)


def to_latex(summary: Summary) -> str:
    """One table environment for the claims and for every table that was run."""
    parts = ["% needs \\usepackage{booktabs,xcolor}; ours, then the paper's number in grey", ""]
    parts.append(_claims(summary))
    parts += [_table(section) for section in summary.sections if section.shared.done]
    return "\n".join(parts)


def _claims(summary: Summary) -> str:
    rows = [
        " & ".join(_text(cell) for cell in (claim.says, claim.verdict, *case_count(claim)))
        for claim in summary.claims
    ]
    return _environment(
        "p{0.5\\linewidth}lrr",
        " & ".join(["claim", "here", "ours", "paper"]),
        rows,
        caption="Claims of the paper, protocol shared.",
        label="claims",
    )


def _table(section: Section) -> str:
    compared = section.shared
    table = compared.table
    rows = []
    for row in compared.rows:
        cells = [_cell(compared.by_place.get((row, column))) for column in compared.columns]
        # A rule above the networks that the paper does not have.
        rule = "\\midrule\n" if row in compared.beyond_rows[:1] else ""
        rows.append(rule + " & ".join([_text(name_of(row)), *cells]))
    return _environment(
        "l" + "r" * len(compared.columns),
        " & ".join(["", *map(_text, compared.columns)]),
        rows,
        caption=_text(f"{table.number}: {table.shows} {_summary(compared)}"),
        label=table.name,
    )


def _summary(compared: Compared) -> str:
    text = f"Protocol {compared.protocol}. {progress_of(compared)}"
    return text + (" Those are below the rule." if compared.beyond else "")


def _cell(shown: Shown | None) -> str:
    if shown is None:
        return ""
    ours = _text(ours_of(shown))
    if shown.verdict in COLOURS:
        ours = f"\\textcolor{{{COLOURS[shown.verdict]}}}{{{ours}}}"
    printed = paper_of(shown)
    return ours + (f" \\textcolor{{gray}}{{{_text(printed)}}}" if printed else "")


def _environment(columns: str, head: str, rows: list[str], *, caption: str, label: str) -> str:
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{caption}}}\\label{{tab:{label}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
            *(f"{row} \\\\" for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def _text(text: str) -> str:
    return text.translate(SPECIAL)
