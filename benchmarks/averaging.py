"""Measure the effect of averaging predictions over orders and over networks.

    python benchmarks/averaging.py [--models c-gru c-deepset] [--tasks WTri]

Nothing is trained: the script reads the runs in results/full/runs, made by
`capnets reproduce main --results results/full`. It writes one line per model and task to
benchmarks/averaging.jsonl, over all available seeds. A mean of capacity networks is a capacity
network.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.explain import Orders
from capnets.files import write_text
from capnets.learn.averaging import mean_added_values, mean_prediction
from capnets.learn.tasks import task_of
from capnets.metrics import added_value_error, mse
from capnets.models.ensemble import Ensemble
from capnets.paper.execute import current
from capnets.paper.names import TASKS
from capnets.paper.results import Results
from capnets.runs import Run
from capnets.sets import Sets
from capnets.tasks import TaskSets

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "full" / "runs"
LINES = Path(__file__).with_suffix(".jsonl")
MODELS = ("c-rnn", "c-lstm", "c-gru", "c-deepset", "c-potential", "rnn", "lstm", "gru", "deepset")
ORDERS = 8
KEY = ("model", "task", "recipe", "size")


def main() -> None:
    """Measure every model on every task from the runs that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--tasks", nargs="*", default=["UC", "US", "WTri", "US+S", "TriC"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = {tuple(x[k] for k in KEY): x for x in known()}
    for key, runs in sorted(groups().items()):
        what = dict(zip(KEY, key, strict=True))
        if what["model"] in given.models and what["task"] in given.tasks:
            lines[key] = what | averaged(runs)
            print(lines[key], flush=True)
    write_text(LINES, "".join(json.dumps(lines[key]) + "\n" for key in sorted(lines)))


def known() -> list[dict[str, Any]]:
    """Return the recorded results."""
    return [json.loads(x) for x in LINES.read_text().splitlines()] if LINES.exists() else []


def groups() -> dict[tuple[str, str, str, int], list[Run]]:
    """Finished runs with one size of sets, no prior and the paper's network, by what they share."""
    short = {name: key for key, name in TASKS.items()}
    found: dict[tuple[str, str, str, int], list[Run]] = {}
    for record in current(Results(RUNS.parent).read()).values():
        choice = record.choice.to_dict()
        plain = not choice.get("priors") and choice.get("activation") is None
        if choice["kind"] != "run" or len(choice.get("sizes", ())) != 1 or not plain:
            continue
        if (choice["hidden"], choice["layers"], choice["sets"]) != (32, 3, 100_000):
            continue
        for folder in RUNS.glob(f"{record.key}-*"):
            if choice["task"] in short and (folder / "weights.safetensors").exists():
                what = choice | {"task": short[choice["task"]], "size": choice["sizes"][0]}
                found.setdefault(tuple(what[k] for k in KEY), []).append(Run(folder))
    return found


def averaged(runs: list[Run]) -> dict[str, Any]:
    """Errors of one network and of all together, in the order given and averaged over orders."""
    task = task_of(runs[0])
    assert isinstance(task, TaskSets)
    models = [run.model.eval() for run in runs]
    together = Ensemble(models)
    line: dict[str, Any] = {"seeds": sorted(run.config.seed for run in runs), "orders": ORDERS}
    for protocol in ("shared", "held-out"):
        sets = task.test_sets(protocol)
        expected = task.expected(sets)
        for orders in (1, ORDERS):
            each = [measured(model, sets, expected, orders) for model in models]
            line[f"{protocol}, alone, {orders}"] = {
                key: round(float(np.mean([m[key] for m in each])), 5) for key in each[0]
            }
            if len(models) > 1:
                found = measured(together, sets, expected, orders)
                line[f"{protocol}, together, {orders}"] = {
                    key: round(value, 5) for key, value in found.items()
                }
    return line


def measured(model: Any, sets: Sets, expected: Any, orders: int) -> dict[str, float]:
    """Return the error of predictions and, if known, of added values in the given order."""
    chosen = Orders.averaging(orders)
    assert sets.y is not None
    found = {"mse": float(mse(sets.y, mean_prediction(model, sets, chosen)[:, 0]))}
    if orders == 1 and expected is not None:
        values = mean_added_values(model, sets, chosen)[:, 0]
        found["values"] = float(added_value_error(expected, values))
    return found


if __name__ == "__main__":
    main()
