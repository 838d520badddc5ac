"""Write the table of real sets in README.md from the records of benchmarks/mil.

    python benchmarks/mil/headline.py [--check]

All methods on the folds of the first repeat: the area under the ROC curve, or R² for amounts. Data
sets appear once the automatic choice has run on all folds; a dash means that a method has not. With
--check, nothing is written, and the command fails if README.md differs from the records.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from table import _measure

from capnets.files import write_text

README = Path(__file__).parents[2] / "README.md"
RECORDS = Path(__file__).with_name("folds.jsonl")
#: Title, number of folds, and position of the measure among those of the large table.
DATA = {
    "elephant": ("elephant", 10, 1),
    "musk1": ("musk1", 10, 1),
    "musk2": ("musk2", 10, 1),
    "mutagenesis": ("mutagenesis", 10, 1),
    "ted-sentences": ("TED comments", 1, 0),
}
METHODS = {
    "auto": "capnets", "gru": "GRU", "set-transformer": "Set Transformer",
    "attention": "attention", "abmil": "ABMIL", "forest": "random forest",
    "boosting": "boosted trees",
}  # fmt: skip


def main() -> None:
    """Fill the table, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    before = README.read_text()
    lines = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    block = f"<!-- real sets -->\n\n{table(lines)}\n\n<!-- end -->"
    text = re.sub(r"<!-- real sets -->.*?<!-- end -->", lambda _: block, before, flags=re.S)
    if not check:
        write_text(README, text)
    elif text != before:
        raise SystemExit("README.md does not show the records: python benchmarks/mil/headline.py")


def table(lines: list[dict[str, Any]]) -> str:
    """Return one row per finished data set, the best method of each in bold."""
    rows = [["", *METHODS.values()], ["---"] * (len(METHODS) + 1)]
    for name, (title, folds, measure) in DATA.items():
        found = [_figure(lines, name, model, folds, measure) for model in METHODS]
        if found[0] is None:
            continue
        best = max(x for x in found if x is not None)
        cells = ["–" if x is None else f"**{x:.3f}**" if x == best else f"{x:.3f}" for x in found]
        rows.append([title, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _figure(lines: list[Any], data: str, model: str, folds: int, measure: int) -> float | None:
    mine = [x for x in lines if (x["data"], x["model"]) == (data, model)]
    alike = [x for x in mine if _settings(x) == _settings(mine[-1])]
    first = {x["fold"]: x for x in alike if x["repeat"] == 0}
    if len(first) < folds:
        return None
    return round(_measure(list(first.values()), measure == 1)[measure], 3)


def _settings(line: dict[str, Any]) -> dict[str, Any]:
    """Return how a line was trained; older lines lack settings that are not in use."""
    parts = line.get("network") or {}, line.get("recipe") or {}
    settings = {k: v for part in parts for k, v in part.items() if v}
    return {**settings, "averaged": line.get("orders")}


if __name__ == "__main__":
    main()
