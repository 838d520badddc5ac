"""Predict sets cut to half: the first half of the atoms of thrombin's test molecules.

    python benchmarks/mil/halves.py

First fold of `run.py`; single networks with the preset of the estimators. Printed are R² for whole
test sets and for their halves, against the label of the whole set. The halves of the automatic
choice are in the table of `run.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from run import halved, load, splits
from sklearn.metrics import r2_score

from capnets.estimators import SetRegressor

NETWORKS = (("c-gru", "mean+sum", "learned"), ("c-gru", "sum", "none"))


def main() -> None:
    """Print one row per network."""
    torch.set_num_threads(1)
    sets = load("thrombin")
    train, test = next(splits("thrombin", sets, 0))
    y, held = np.asarray(sets.y), sets.subset(test)
    print("| network | R², whole sets | R², halves |\n|---|---|---|")
    for name, aggregation, baseline in NETWORKS:
        model = SetRegressor(
            name, aggregation=aggregation, baseline=baseline, members=1, random_state=0
        ).fit(sets.subset(train), y[train])
        scores = [r2_score(y[test], model.raw(s)[:, 0]) for s in (held, halved(held))]
        print(f"| {name}, {aggregation}, baseline {baseline} | {scores[0]:.3f} | {scores[1]:.3f} |")


if __name__ == "__main__":
    main()
