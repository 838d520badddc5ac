"""Write the tables of real sets in README.md and docs/findings/real-sets.md from the records.

    python benchmarks/mil/headline.py [--check]

README: six methods on the folds that they share, the area under the ROC curve, or R² for amounts.
Data sets appear once the automatic choice has run on all folds; a dash means that a method has not.
The page of findings: the automatic choice beside the best other method, in a sentence and a table,
its log loss, and values with known truth. With --check, nothing is written, and the command fails
if a page differs from the records.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from calibration import rows_of_losses
from table import FOLDS, _measure, against, compared, duels, shared, summary

from capnets.files import write_text

HERE = Path(__file__).parent
RECORDS, KNOWN = HERE / "folds.jsonl", HERE / "known.jsonl"
README = HERE.parents[1] / "README.md"
FINDINGS = HERE.parents[1] / "docs" / "findings" / "real-sets.md"
#: The page that has all findings in a sentence each.
INDEX = FINDINGS.with_name("index.md")
#: The network that the documentation recommends for each question with known values.
RECOMMENDED = {
    "count": "c-deepset:sum:none",
    "any": "c-deepset:any:none",
    "atoms": "c-linear:sum:none",
    "ratings": "c-deepset:mean:learned",
}
POST_HOC = ("gru", "deepset", "attention")
#: Titles with the number of sets, and the position of the measure in the large table.
DATA = {
    "elephant": ("elephant, 200 images", 1),
    "musk1": ("musk1, 92 molecules", 1),
    "musk2": ("musk2, 102 molecules", 1),
    "mutagenesis": ("mutagenesis, 188 molecules", 1),
    "protein": ("protein, 193 proteins", 1),
    "birds": ("birds, 548 recordings", 1),
    "web1": ("web1, 75 pages", 1),
    "thrombin": ("thrombin, 3,181 molecules", 0),
    "womens-clothing": ("clothing, 6,000 reviews", 0),
    "ted-sentences": ("TED, 1,200 comments", 0),
}
#: The network that stands for those whose values are good.
NAMED = "c-deepset:mean:learned"
METHODS = {
    "auto": "capnets", NAMED: "C-DeepSet", "boosting": "boosted trees",
    "forest": "random forest", "gru": "GRU", "set-transformer": "Set Transformer", "abmil": "ABMIL",
}  # fmt: skip


def main() -> None:
    """Fill the tables, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    lines = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    known = [json.loads(line) for line in KNOWN.read_text().splitlines()]
    write(README, {"real sets": table(lines)}, check=check)
    blocks = {
        "answer": answer(lines),
        "summary": "\n".join(summary(lines)),
        "trees": "\n".join(against(lines, "boosting")),
        "calibration": "\n".join(rows_of_losses(lines)),
        "known": known_values(known),
    }
    write(FINDINGS, blocks, check=check)
    errors = recommended_errors(known)
    said = f"by {min(errors):.2f} to {max(errors):.2f} on [real features]"
    page = re.sub(r"by \d\.\d\d to \d\.\d\d on \[real features\]", said, README.read_text())
    replace(README, page, check=check)
    every = compared(lines)
    level = sum(x.difference >= -x.error for x in every)
    said = f"On {level} of {len(every)} data sets the automatic choice is ahead"
    page = re.sub(r"On \d+ of \d+ data sets the automatic choice is ahead", said, INDEX.read_text())
    replace(INDEX, page, check=check)


def write(path: Path, blocks: dict[str, str], *, check: bool) -> None:
    """Replace the text between markers, or compare it."""
    text = path.read_text()
    for name, block in blocks.items():
        block = f"<!-- {name} -->\n\n{block}\n\n<!-- end -->"
        text = re.sub(rf"<!-- {name} -->.*?<!-- end -->", lambda _, b=block: b, text, flags=re.S)
    replace(path, text, check=check)


def replace(path: Path, text: str, *, check: bool) -> None:
    """Replace a page, or compare it."""
    if not check:
        write_text(path, text)
    elif text != path.read_text():
        raise SystemExit(f"{path.name} does not show the records: {Path(__file__).name}")


def answer(lines: list[dict[str, Any]]) -> str:
    """Count the data sets where the automatic choice is ahead, level or behind."""
    found = compared(lines)
    ahead = [x for x in found if x.difference >= 0]
    level = [x for x in found if -x.error <= x.difference < 0]
    behind = [f"{x.name} ({-x.difference:.3f})" for x in found if x.difference < -x.error]
    said = (
        f"Of {len(found)} data sets, the automatic choice is level with or ahead of every "
        f"other method that was run on {len(ahead)}, within one standard error of the best of them "
        f"on {len(level)}, and further behind on {' and '.join(behind) or 'none'}."
    )
    return textwrap.fill(said, 118)


def recommended_errors(lines: list[dict[str, Any]]) -> list[float]:
    """Return the error of the averaged values of the recommended network for every question."""
    found = {
        question: [x for x in lines if (x["question"], x["network"]) == (question, name)]
        for question, name in RECOMMENDED.items()
    }
    return [
        float(np.mean([x["value_error"]["mean added values"] for x in own]))
        for own in found.values()
    ]


def known_values(lines: list[dict[str, Any]]) -> str:
    """Compare the recommended network with the closest post-hoc method, on the same folds."""
    rows = [
        "| question | folds | recommended network | R² | values in order | averaged "
        "| closest post-hoc method, in order | averaged |",
        "|---" * 8 + "|",
    ]
    for question, name in RECOMMENDED.items():
        found = {(x["network"], x["fold"]): x for x in lines if x["question"] == question}
        posts = [p for p in POST_HOC if any(network == p for network, _ in found)]
        folds = [
            f for network, f in found if network == name and all((p, f) in found for p in posts)
        ]
        own = [found[name, f] for f in folds]
        others = {
            (post, method): np.mean([found[post, f]["value_error"][method] for f in folds])
            for post in posts
            for method in found[post, folds[0]]["value_error"]
        }
        ordered = {f"`{p}`": e for (p, method), e in others.items() if method == "added values"}
        mean = {f"`{p}`, {m}": e for (p, m), e in others.items() if m != "added values"}
        closest = [min(kind, key=lambda k, kind=kind: kind[k]) for kind in (ordered, mean)]
        cells = [
            question, str(len(folds)), f"`{name}`", f"{np.mean([x['r2'] for x in own]):.3f}",
            *(f"{np.mean([x['value_error'][m] for x in own]):.3f}"
              for m in ("added values", "mean added values")),
            *(f"{k} {kind[k]:.3f}" for k, kind in zip(closest, (ordered, mean), strict=True)),
        ]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def table(lines: list[dict[str, Any]]) -> str:
    """Count data sets where networks beat boosted trees; one row each, the best method in bold."""
    trees = duels(lines, "boosting")
    ahead = [x for x in trees if x.difference > 0]
    clearly = [x for x in ahead if x.difference > 2 * x.error]
    on = f"all {len(ahead)}" if len(ahead) == len(trees) else f"{len(ahead)} of {len(trees)}"
    rows = [["", *METHODS.values()], ["---"] * (len(METHODS) + 1)]
    measures, alone = [], []
    for name, (title, measure) in DATA.items():
        own = shared(lines, name, also=(NAMED,))
        if len(own.get("auto", [])) < FOLDS.get(name, 10):
            continue
        found = [
            round(_measure(own[m], measure == 1)[measure], 3) if m in own else None for m in METHODS
        ]
        measures.append(measure)
        columns = dict(zip(METHODS, found, strict=True))
        if None not in (pair := (columns[NAMED], columns["boosting"])):
            alone.append(pair[0] > pair[1])
        best = max(x for x in found if x is not None)
        cells = ["–" if x is None else f"**{x:.3f}**" if x == best else f"{x:.3f}" for x in found]
        rows.append([title, *cells])
    said = (
        f"`capnets` beats boosted trees on {on} data sets (on {len(clearly)} by more than two "
        f"standard errors), C-DeepSet alone on {sum(alone)}. The last {measures.count(0)} rows are "
        "R², the others AUC" + ("; a dash: not run." if any("–" in row for row in rows) else ".")
    )
    said = textwrap.fill(said, 118)
    return "\n".join([said, "", *("| " + " | ".join(row) + " |" for row in rows)])


if __name__ == "__main__":
    main()
