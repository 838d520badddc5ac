"""Write the tables and the figure of docs/findings/orders.md from benchmarks/orders.jsonl.

    python benchmarks/orders_page.py

Only the text between the markers <!-- NAME --> and <!-- end --> of the page is replaced. Nothing is
trained, and no number is typed by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from orders import RECORDS, STUDIES, WAYS
from turns import recorded

from capnets.files import write_text
from capnets.tasks import PROTOCOLS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings" / "orders.md"
PICTURE = ROOT / "docs" / "images" / "orders.png"
SETTING = {"sets": 30_000, "epochs": 12, "size": 10}
COLORS = {
    "c-gru": "#b45309",
    "c-deepset": "#1d4ed8",
    "c-potential": "#047857",
    "deepset": "#6b7280",
}

Records = list[dict[str, Any]]


def main() -> None:
    """Write the page's tables and its picture."""
    alike = [r for r in recorded(RECORDS) if all(r[k] == v for k, v in SETTING.items())]
    # One line per training: the newest has test sets too, where they were asked for.
    records = list({(r["way"], r["task"], r["seed"]): r for r in alike}.values())
    tables = {name: table(records, STUDIES[name], "valid") for name in STUDIES if name != "all"}
    tables |= {name: table(records, list(WAYS), name) for name in PROTOCOLS}
    text = PAGE.read_text()
    for name, rows in tables.items():
        pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if pattern.search(text):
            text = pattern.sub(lambda m, t=rows: f"{m[1]}\n{t}\n\n{m[2]}", text)
    write_text(PAGE, text)
    draw(records)


def table(records: Records, ways: list[str], part: str) -> str:
    """Spread, errors and cost of some ways on all tasks; means over seeds."""
    head = ["task", "way", "seeds", "spread", "MSE", "MSE, mean of 5 orders"]
    head += ["error of added values", "seconds"]
    rows = [head, ["---"] * len(head)]
    for task in dict.fromkeys(r["task"] for r in records):
        for way in ways:
            some = [r for r in records if (r["task"], r["way"]) == (task, way) and part in r]
            if some:
                spread, mse, averaged, values = (
                    mean(r[part][k] for r in some) for k in ("spread", "mse", "averaged", "values")
                )
                rows.append([task, way, str(len(some)), "0" if spread < 1e-4 else f"{spread:.2g}"])
                rows[-1] += [f"{number:.3g}" for number in (mse, averaged, values)]
                rows[-1].append(f"{mean(r['seconds'] for r in some):.0f}")
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def draw(records: Records) -> None:
    """Error against spread, a point per way, numbered by error."""
    tasks = list(dict.fromkeys(r["task"] for r in records))
    figure, axes = plt.subplots(1, len(tasks), figsize=(6 * len(tasks), 3.6), squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        points: list[tuple[float, float, str]] = []
        for way in WAYS:
            some = [r["valid"] for r in records if (r["task"], r["way"]) == (task, way)]
            if not some:
                continue
            points.append((mean(r["mse"] for r in some), mean(r["spread"] for r in some), way))
        for place, (y, x, way) in enumerate(sorted(points)):
            model = way.partition(", ")[0]
            axis.plot(x, y, "o", color=COLORS[model], label=f"{place + 1}  {way}")
            axis.annotate(
                str(place + 1), (x, y), fontsize=8, xytext=(4, 3), textcoords="offset points"
            )
        axis.set(title=task, xlabel="spread over orders, in units of the label", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.margins(y=0.15)
        axis.set_xlim(left=0 - 0.02 * axis.get_xlim()[1])
        axis.legend(fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("MSE on validation sets")
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()
