"""Compare features and principal components as inputs, where features outnumber instances.

    python benchmarks/mil/wide.py
    python benchmarks/mil/wide.py --fold web1    # time a fold beside torchmil's ABMIL

Sentences as bags of words, from two data sets that are not in the arena: 240 comments on talks, 300
book reviews; the label is whether the rating is above the median. AUC on 600 other sets, mean over
three draws, two networks per candidate; processor seconds of a training.
"""

from __future__ import annotations

import argparse
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


#: Methods of the arena whose fold is timed: two capacity networks as named, and another's.
TIMED = ("abmil", "c-deepset", "c-gru")


def time_fold(name: str, fold: int = 0) -> None:
    """Print processor seconds and AUC of one fold of the arena for every timed method."""
    from run import load, one_fold, peer, splits
    from torchmil.models import ABMIL  # noqa: F401  # imports do not count

    sets = load(name)
    print(name, f"{len(sets)} sets", f"{sets.in_features} features", f"fold {fold}", sep=" | ")
    train, test = list(splits(name, sets, 0))[fold]
    for method in TIMED:
        found = (peer if method == "abmil" else one_fold)(name, sets, method, train, test, fold)
        area = roc_auc_score(found["labels"], found["scores"])
        print(method, f"{found['cpu_seconds']} s", f"AUC {area:.3f}", sep=" | ", flush=True)


def main() -> None:
    """Print a line per data set and input, or the times of one fold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fold", metavar="DATA", help="time one fold of this data set instead")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.fold:
        return time_fold(given.fold)
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
