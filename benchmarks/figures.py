"""Draw the figures of docs/findings that have no script of their own.

    python benchmarks/figures.py [--check]

speed.png is drawn from the newest run in speed.jsonl, claims.png from the table of claims in
docs/findings/paper.md, which results/render.py writes, future.png from future.jsonl,
real-sets.png from the first table of docs/findings/real-sets.md, which mil/headline.py writes.
A figure holds a digest of the data that it shows. With --check nothing is written, and the command
fails if a figure shows other data than those of the records.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from turns import newest, recorded

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
BATCH = 250
BLUE, ORANGE, GRAY = "#1d4ed8", "#b45309", "#9ca3af"
#: Networks of the figure of speed, ours and others'.
TRAINED = (
    "deepset", "c-gru", "gru", "c-deepset", "set-transformer", "torch-geometric sum",
    "torchmil ABMIL", "torch-geometric GRU", "torch-geometric Set Transformer",
)  # fmt: skip
#: First words of a claim, and its short form.
CLAIMS = {
    "A capacity network has a lower error": "lower error than its counterpart",
    "The best capacity network": "best capacity network beats all others",
    "The lead of a capacity network": "lead grows with set size",
    "A capacity network also beats its counterpart with fewer": "lower error with fewer sets",
    "A capacity network also beats its counterpart when": "lower error on sets of varying size",
    "A capacity network is less sensitive": "less sensitive to order",
    "Added values of a capacity network": "more exact added values",
}


def main() -> None:
    """Draw all figures, or compare their data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for name, draw in DRAWN.items():
        path = DOCS / "images" / name
        figure, data = draw()
        digest = hashlib.sha256(json.dumps(data).encode()).hexdigest()
        if not check:
            figure.savefig(path, dpi=150, metadata={"Comment": digest})
        elif Image.open(path).info.get("Comment") != digest:
            raise SystemExit(f"{name} does not show the records: {Path(__file__).name}")


def draw_speed() -> tuple[Figure, Any]:
    """Training time per set, a bar per network."""
    found = {
        x["network"]: x["us"]
        for x in newest(HERE / "speed.jsonl")
        if x["part"] == "sets" and x["what"] == "train" and x["batch"] == BATCH
    }
    names = sorted((n for n in TRAINED if n in found), key=found.__getitem__, reverse=True)
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    colors = [GRAY if n.startswith("torch") else BLUE for n in names]
    axes.bar_label(axes.barh(names, [found[n] for n in names], color=colors), fmt="%.0f", padding=3)
    axes.set_xlabel(f"training, µs of processor time per set of ten (batches of {BATCH})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, [(n, found[n]) for n in names]


def draw_claims() -> tuple[Figure, Any]:
    """Share of the cases in which a claim holds, printed and found."""
    page = (DOCS / "findings" / "paper.md").read_text()
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ")]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    names: list[str] = []
    drawn = []
    for start, short in CLAIMS.items():
        [row] = [r for r in rows if r[0].startswith(start)]
        drawn.append((row[0], row[1], row[4]))
        shares = [_share(row[k]) for k in (1, 4)]
        axes.plot(shares, [len(names)] * 2, color=GRAY, zorder=1)
        for share, color, marker in zip(shares, (ORANGE, BLUE), "so", strict=True):
            axes.scatter(share, len(names), color=color, marker=marker, zorder=2)
        names.append(f"{short} ({row[4].split(' [')[0]})")
    axes.scatter([], [], color=ORANGE, marker="s", label="printed in the paper")
    axes.scatter([], [], color=BLUE, label="here, our best recipe")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(-0.04, 1.04)
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
    axes.set_xlabel("cases in which the claim holds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure, drawn


def draw_future() -> tuple[Figure, Any]:
    """Error of predictions against error of added values on sets of edges, a point per network."""
    lines = [x for x in recorded(HERE / "future.jsonl") if x["task"] == "graph" and x["seed"] == 0]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for line in lines:
        x, y, ours = line["added_value_error"], line["mse"], line["way"].startswith("C-")
        axes.scatter(x, y, color=BLUE if ours else GRAY, marker="o" if ours else "s")
        left = x > 0.8  # keep the name inside the axes
        axes.annotate(line["way"], (x, y), xytext=(-7 if left else 7, 0), va="center",
                      ha="right" if left else "left", textcoords="offset points")  # fmt: skip
    axes.scatter([], [], color=BLUE, label="capacity networks")
    axes.scatter([], [], color=GRAY, marker="s", label="others")
    axes.set_xlim(0, 1)
    axes.set_xlabel("mean absolute error of the added values")
    axes.set_ylabel("test MSE of the prediction")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure, [(x["way"], x["added_value_error"], x["mse"]) for x in lines]


def draw_real_sets() -> tuple[Figure, Any]:
    """Difference between the automatic choice and the best other method, ± two standard errors."""
    page = (DOCS / "findings" / "real-sets.md").read_text()
    table = page.split("<!-- summary -->")[1].split("<!-- end -->")[0]
    rows = [row.strip("| ").split(" | ") for row in table.strip().splitlines()[2:]]
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    axes.axvline(0, color=GRAY, lw=1)
    for place, (_, _, _, _, difference, error, *_) in enumerate(rows):
        axes.errorbar(
            float(difference), place, xerr=2 * float(error), fmt="o", color=BLUE, capsize=3
        )
    names = [f"{name} ({best.split(' ')[0]})" for name, _, _, best, *_ in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel("automatic choice minus the best other method (in parentheses)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, rows


def _share(cell: str) -> float:
    agree, cases = map(int, re.findall(r"\d+", cell)[:2])
    return agree / cases


#: Name of each figure, and the function that draws it and returns the data.
DRAWN = {
    "speed.png": draw_speed,
    "claims.png": draw_claims,
    "future.png": draw_future,
    "real-sets.png": draw_real_sets,
}

if __name__ == "__main__":
    main()
