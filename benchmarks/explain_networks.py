"""Train the networks of the explanation benchmarks and keep them in runs/explain.

    python benchmarks/explain_networks.py        # train all that are missing

They are trained on sets of one to ten of scikit-learn's digits. Explanations evaluate subsets, and
a network trained only on sets of ten may be wrong about smaller sets. Some networks are trained
that way, too, for comparison.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import torch

from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_problem
from capnets.runs import Run
from capnets.sets import Sets
from capnets.tasks import TaskSets, make, parse_task
from capnets.training.recipe import recipe

FOLDER = Path("runs/explain")
RECIPE = recipe("large", epochs=20, batch_size=100)
JUDGED = ("c-gru", "gru", "deepset", "attention")
NETWORKS = [
    *[(task, "c-gru", False) for task in ("US", "WTri", "UC", "US+S")],
    *[(task, model, ten) for ten in (False, True) for task in ("US", "WTri") for model in JUDGED],
]


@cache
def training_sets(task: str, ten: bool) -> TaskSets:
    """Return sets of one to ten digits, or of ten."""
    sizes = (10,) if ten else range(1, 11)
    spec = parse_task(f"{task}:digits", sizes=sizes, sets=20_000, valid_sets=2_000, test_sets=2_000)
    return make(spec)


@cache
def explained_sets(task: str, many: int) -> tuple[TaskSets, Sets]:
    """Return new sets of ten digits, with the same images."""
    drawn = make(parse_task(f"{task}:digits", sets=1, valid_sets=1, test_sets=many, seed=1))
    return drawn, drawn.test


def trained(task: str, model: str, *, ten: bool = False) -> Run:
    """Return the run of a network; train it if it is missing or incomplete."""
    folder = FOLDER / f"{task.lower()}-{model}{'-ten' if ten else ''}"
    problem = task_problem(training_sets(task, ten))
    plan = make_plan(problem, Options(model=model, recipe=RECIPE))
    return train(problem, plan, folder, resume=(folder / "config.json").exists())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for task, model, ten in NETWORKS:
        began = time.perf_counter()
        metrics = trained(task, model, ten=ten).metrics
        shown = {p: round(metrics[p]["mse"], 3) for p in ("shared", "held-out")}
        print(task, model, "ten" if ten else "one to ten", shown, end=" ")
        print(f"{time.perf_counter() - began:.0f} s", flush=True)
