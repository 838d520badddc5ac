"""The networks that the benchmarks of explanations use: trained once, then kept in runs/explain.

    python benchmarks/explain_networks.py        # train all that are missing
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from capnets.experiment import train_task
from capnets.models import ModelSpec
from capnets.runs import Run
from capnets.tasks import TaskSets, TaskSpec, make, parse_task
from capnets.training.recipe import recipe

FOLDER = Path("runs/explain")
EPOCHS = 40
NETWORKS = [
    *[(task, "c-gru") for task in ("US", "WTri", "UC", "US+S")],
    *[(task, model) for task in ("US", "WTri") for model in ("gru", "deepset", "attention")],
]
_drawn: dict[TaskSpec, TaskSets] = {}


def task_sets(name: str) -> TaskSets:
    """The sets of a task on scikit-learn's digits: 40,000 to train with, ten instances each."""
    spec = parse_task(f"{name}:digits", sets=40_000, valid_sets=2_000, test_sets=2_000)
    if spec not in _drawn:
        _drawn[spec] = make(spec)
    return _drawn[spec]


def trained(task: str, model: str) -> Run:
    """The run of a network; trained now if it is not there or not complete."""
    return train_task(
        FOLDER / f"{task.lower()}-{model}",
        task_sets(task),
        ModelSpec(model),
        recipe=recipe("fast", epochs=EPOCHS),
        resume=(FOLDER / f"{task.lower()}-{model}" / "config.json").exists(),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    for task, model in NETWORKS:
        began = time.perf_counter()
        metrics = trained(task, model).metrics
        shown = {p: round(metrics[p]["mse"], 3) for p in ("shared", "held-out")}
        print(task, model, shown, f"{time.perf_counter() - began:.0f} s", flush=True)
