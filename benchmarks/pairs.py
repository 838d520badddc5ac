"""Compare capacity networks with their counterparts on ten times as many test sets.

    python benchmarks/pairs.py [--sets 100000] [--recipe muon]

After replay, a few images cause most of the error on digits, and 10,000 test sets contain some of
them by chance: the ranking of two networks may differ on other test sets. Nothing is trained: the
runs in results/full/runs (`capnets reproduce main --results results/full`) are evaluated on new
sets, drawn with another seed. One line per network, task and seed is appended to
benchmarks/pairs.jsonl; recorded results are reused. Then the table is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from averaging import groups
from turns import record, recorded

from capnets.evaluate import predict
from capnets.learn.tasks import task_of
from capnets.metrics import mse
from capnets.paper.scales import RECIPES
from capnets.runs import Run, versions
from capnets.tasks import TaskSets

RECORDS = Path(__file__).with_suffix(".jsonl")
TASKS = ("UC", "US", "WTri", "US+S", "TriC")
PAIRS = {"c-rnn": "rnn", "c-lstm": "lstm", "c-gru": "gru", "c-deepset": "deepset"}
SIZE = 10
SEED = 1  # of the sets; those of the tables are drawn with 0


def main() -> None:
    """Measure what is not there yet, and say who is ahead."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100_000)
    parser.add_argument("--recipe", choices=RECIPES, default=RECIPES[0])
    given = parser.parse_args()
    torch.set_num_threads(1)
    done = {of(line) for line in recorded(RECORDS)}
    found = groups()
    for task in TASKS:
        missing = []
        for model in (*PAIRS, *PAIRS.values()):
            for run in found.get((model, task, given.recipe, SIZE), []):
                choice = {
                    "model": model, "task": task, "recipe": given.recipe, "seed": run.config.seed,
                    "sets": given.sets,
                }  # fmt: skip
                if of(choice) not in done:
                    missing.append((choice, run))
        if missing:
            measure(missing, task_of(missing[0][1], test_sets=given.sets, seed=SEED))
    asked = (given.recipe, given.sets)
    table([line for line in recorded(RECORDS) if (line["recipe"], line["sets"]) == asked])


def of(line: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key of a line."""
    return tuple(line[key] for key in ("model", "task", "recipe", "seed", "sets"))


def measure(runs: list[tuple[dict[str, Any], Run]], task: Any) -> None:
    """Errors of trained networks on new sets of the same images, and of images never seen."""
    assert isinstance(task, TaskSets)
    for choice, run in runs:
        line = dict(choice)
        for protocol in ("shared", "held-out"):
            sets = task.test_sets(protocol)
            assert sets.y is not None
            line[protocol] = round(float(mse(sets.y, predict(run.model, sets))), 5)
        record(RECORDS, [line | {"versions": versions()}])
        print(line, flush=True)


def table(lines: list[dict[str, Any]]) -> None:
    """Both networks of every pair, and in how many the capacity network is ahead."""
    for protocol in ("shared", "held-out"):
        print(f"\n| {protocol} | " + " | ".join(TASKS) + " | ahead by mean | by median |")
        print("| --- " * (len(TASKS) + 3) + "|")
        for capacity, counterpart in PAIRS.items():
            row, ahead = [], {mean: 0, median: 0}
            for task in TASKS:
                ours, theirs = (
                    [x[protocol] for x in lines if (x["model"], x["task"]) == (name, task)]
                    for name in (capacity, counterpart)
                )
                if not ours or not theirs:
                    row.append("–")
                    continue
                for middle in ahead:
                    ahead[middle] += middle(ours) < middle(theirs)
                row.append(f"{mean(ours):.3g}, {mean(theirs):.3g}")
            counts = " | ".join(str(n) for n in ahead.values())
            print(f"| {capacity}, {counterpart} | " + " | ".join(row) + f" | {counts} |")


if __name__ == "__main__":
    main()
