"""Draw the figures of docs/findings that have no script of their own: speed and claims.

    python benchmarks/figures.py

speed.png is drawn from the newest run in speed.jsonl, claims.png from the table of claims in
docs/findings/paper.md, which results/render.py writes.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from turns import newest

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
    """Draw both."""
    draw_speed(DOCS / "images" / "speed.png")
    draw_claims(DOCS / "images" / "claims.png")


def draw_speed(path: Path) -> None:
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
    figure.savefig(path, dpi=150)


def draw_claims(path: Path) -> None:
    """Share of the cases in which a claim holds, printed and found."""
    page = (DOCS / "findings" / "paper.md").read_text()
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ")]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    names = []
    for start, short in CLAIMS.items():
        [row] = [r for r in rows if r[0].startswith(start)]
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
    figure.savefig(path, dpi=150)


def _share(cell: str) -> float:
    agree, cases = map(int, re.findall(r"\d+", cell)[:2])
    return agree / cases


if __name__ == "__main__":
    main()
