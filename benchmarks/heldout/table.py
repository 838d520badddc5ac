"""Format the held-out study as Markdown and draw its figure.

    python benchmarks/heldout/table.py [--figure docs/images/held-out.png]

Everything comes from records.jsonl beside this file; capacity networks on patches
also from results/full.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data import records

from capnets.paper.execute import current
from capnets.paper.results import Results
from capnets.tasks.functions import find_function

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL = Path(__file__).parents[2] / "results/full"
TASKS = ("US", "WTri", "US+S")
COLOURS = {"patches": "C1", "taught": "C4", "averaged": "C3", "warped": "C2"}
#: What a way is judged by in the figure, where not by the mean over orders alone.
SHOWN = {"warped": "both"}
#: Records of results/full that compare: sets of ten, everything else as the main table has it.
PLAIN = {
    "kind": "run", "sizes": [10], "sets": 100_000, "embedding": "patches", "seed": 0,
    "recipe": "fast", "epochs": None, "hidden": 32, "layers": 3, "activation": None, "priors": [],
}  # fmt: skip
LABELS = {"c-gru": "C-GRU", "c-deepset": "C-DeepSet"}
JUDGED = {
    "given": "as it is", "orders": "8 orders", "readings": "8 warped readings", "both": "both"
}  # fmt: skip


def main() -> None:
    """Print both tables; draw the figure where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    lines = records()
    limits(lines)
    networks(lines)
    if given.figure:
        draw(lines, given.figure)


def limits(lines: list[dict[str, Any]]) -> None:
    """Readers, and what their confusions cost: classes told, mean label."""
    print("| reader | digits confused |" + "".join(f" {t}: told | mean |" for t in TASKS))
    print("|---|---|" + "---|---|" * len(TASKS))
    chosen = [line for line in lines if line["kind"] == "limit"]
    chosen.sort(key=lambda line: -line["confused"])
    for name in dict.fromkeys(line["reader"] for line in chosen):
        of = {line["task"]: line for line in chosen if line["reader"] == name}
        confused = next(iter(of.values()))["confused"]
        cells = [f" {of[t]['told']:.2f} | {of[t]['mean']:.2f} |" for t in TASKS]
        print(f"| {name} | {confused:.2%} |" + "".join(cells))
    print()


def networks(lines: list[dict[str, Any]]) -> None:
    """Networks trained from set labels, in every way they were judged in."""
    print("| task | cut | network | sets | epochs |", " | ".join(JUDGED.values()), end=" ")
    print("| error of added values | seconds |")
    print("|---|---|---|---|---|" + "---|" * (len(JUDGED) + 2))
    for line in reproduced():
        print(
            f"| {line['task']} | test | {line['way']} | 100,000 | 30 "
            f"| {line['given']:.3f} | | | | {line['values']:.3f} | |"
        )
    for line in lines:
        if line["kind"] == "network":
            errors = [f"{line[k]:.3f}" if k in line else "" for k in JUDGED]
            print(
                f"| {line['task']} | {line['cut']} | {line['way']} | {line['sets']:,} "
                f"| {line['epochs']} | {' | '.join(errors)} | {line['added_value_error']:.3f} "
                f"| {line['seconds']:.0f} |"
            )


def reproduced() -> list[dict[str, Any]]:
    """Capacity networks on patches, from the reproduction at full scale."""
    found = []
    for record in current(Results(FULL).read()).values():
        choice, metrics = record.choice.to_dict(), record.metrics
        if choice.get("model") in LABELS and PLAIN.items() <= choice.items():
            for task in TASKS:
                if find_function(task).name == choice["task"] and "held-out" in metrics:
                    held = metrics["held-out"]
                    values = held["added_value_error"]
                    found.append(
                        {
                            "kind": "network", "way": f"patches, {LABELS[choice['model']]}",
                            "cut": "test", "task": task, "given": held["mse"], "values": values,
                        }
                    )  # fmt: skip
    return found


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Error against confused digits: readers told the classes, networks told set labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(TASKS)), TASKS, strict=True):
        panel(axes, [line for line in lines if line["task"] == task])
        axes.set_title(task)
        axes.set_xlabel("digits confused (%)")
    figure.axes[0].set_ylabel("MSE on sets of unseen images")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def panel(axes: Axes, lines: list[dict[str, Any]]) -> None:
    """One task."""
    from matplotlib.ticker import LogLocator, ScalarFormatter

    noise = [(100 * line["confused"], line["told"]) for line in lines if line["kind"] == "noise"]
    axes.plot(*zip(*sorted(noise), strict=True), color="0.7", label="classes replaced at random")
    readers = [line for line in lines if line["kind"] == "limit"]
    at = [100 * line["confused"] for line in readers]
    for key, face, label in (
        ("told", "none", "most probable classes"),
        ("mean", "C0", "mean label"),
    ):
        axes.plot(at, [r[key] for r in readers], "o", mfc=face, color="C0",
                  label=f"told the classes: {label}")  # fmt: skip
    for line in lines:
        if line["kind"] == "network" and line["cut"] == "test" and line["way"] in COLOURS:
            judged = SHOWN.get(line["way"], "orders")
            more = ", 8 readings" if judged == "both" else ""
            axes.axhline(line[judged], color=COLOURS[line["way"]], lw=1.3, ls="--",
                         label=f"set labels only: {line['way']}, 8 orders{more}")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(0.15, 2.1), ylim=(noise[0][1] * 1.5, None))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()


if __name__ == "__main__":
    main()
