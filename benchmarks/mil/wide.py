"""Compare features and principal components as inputs, where features outnumber instances.

    python benchmarks/mil/wide.py

Sentences as bags of words, from two data sets that are not in the arena: 240 comments on talks, 300
book reviews; the label is whether the rating is above the median. AUC on 600 other sets, mean over
three draws, two networks per candidate; processor seconds of a training.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from bags import load_wmil
from sklearn.metrics import roc_auc_score

from capnets.estimators import SetClassifier
from capnets.learn import learn
from capnets.learn.averaging import mean_prediction
from capnets.learn.choice import CANDIDATES, Candidate
from capnets.learn.options import Options
from capnets.learn.problem import Problem
from capnets.sets import Sets
from capnets.sets.orders import Orders

TRAIN = {"ted_comments": 240, "audible": 300}
TEST, DRAWS, MEMBERS = 600, 3, 2
COMPARED = [c for c in CANDIDATES if c.title in ("c-gru:mean+sum:learned", "c-deepset:mean:learned",
            "c-pool:sum:learned", "c-trees:sum:learned", "c-pairs:sum:learned")]  # fmt: skip


def main() -> None:
    """Print a line per data set, input and draw, then the means."""
    torch.set_num_threads(1)
    for name in TRAIN:
        for inputs in ("standardize", "project"):
            found = np.array([one_draw(name, inputs, draw) for draw in range(DRAWS)])
            means = found.mean(0)
            cells = [
                f"{c.model} {a:.3f} ({s:.0f} s)" for c, (a, s) in zip(COMPARED, means, strict=True)
            ]
            print(name, inputs, *cells, sep=" | ", flush=True)


def one_draw(name: str, inputs: str, draw: int) -> list[tuple[float, float]]:
    """Return AUC and seconds of every candidate on one split."""
    sets = load_wmil(name)
    y = np.asarray(sets.y).reshape(len(sets), -1)[:, 0]
    sets = Sets(sets.instances, sets.index, sets.offsets, (y > np.median(y)).astype(np.float32))
    order = np.random.default_rng(draw).permutation(len(sets))
    train, test = np.split(order[: TRAIN[name] + TEST], [TRAIN[name]])
    problem = SetClassifier(random_state=0).problem(
        sets.subset(train), np.asarray(sets.y)[train].astype(int)
    )
    return [measure(candidate, problem, sets.subset(test), inputs) for candidate in COMPARED]


def measure(candidate: Candidate, problem: Problem, test: Sets, inputs: str) -> tuple[float, float]:
    """Return AUC and processor seconds of one candidate."""
    plan = candidate.plan(problem, Options(members=MEMBERS))
    plan = replace(plan, model=replace(plan.model, inputs=inputs))
    began = time.process_time()
    model, _ = learn(problem, plan)
    seconds = time.process_time() - began
    scores = mean_prediction(model, test, Orders.averaging(4))[:, 0]
    return roc_auc_score(test.y, scores), seconds


if __name__ == "__main__":
    main()
