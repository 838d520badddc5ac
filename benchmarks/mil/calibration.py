"""Measure the log loss of default classifiers with and without calibration.

    python benchmarks/mil/calibration.py

Three of five stratified folds per data set; a C-GRU with `mean+sum` and a learned baseline. Printed
are the mean log losses of the logits as trained, divided by the temperature of single networks on
inner folds, and divided by the temperature that the estimator uses for an average of networks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from capnets.estimators import SetClassifier
from capnets.ingest import read_npz

DATA = ("musk1", "mutagenesis", "elephant", "protein")


def main(names: list[str]) -> None:
    """Print one line per data set."""
    folder = Path(os.environ["CAPNETS_DATA"]) / "mil"
    for name in names or DATA:
        sets = read_npz(folder / f"{name}.npz").sets
        y = np.asarray(sets.y).reshape(len(sets))
        losses: dict[str, list[float]] = {"trained": [], "single": [], "used": []}
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(y, y)
        for train, test in list(folds)[:3]:
            model = SetClassifier(
                "c-gru", aggregation="mean+sum", baseline="learned", random_state=0
            ).fit(sets.subset(train))
            heat = model.plan_.temperature
            logits = model.decision_function(sets.subset(test)) * heat
            for key, t in (("trained", 1.0), ("single", heat**2), ("used", heat)):
                losses[key].append(log_loss(y[test], expit(logits / t)))
        shown = ", ".join(f"{key} {np.mean(values):.3f}" for key, values in losses.items())
        print(f"{name}: {shown}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
