"""Measure the log loss of default classifiers with and without calibration.

    python benchmarks/mil/calibration.py --lines      # the automatic choice, from folds.jsonl
    python benchmarks/mil/calibration.py musk1        # trains: with and without calibration

With `--lines`: the log loss of the automatic choice on the test folds of `run.py`, beside that of
predicting the share of each class among all sets. The temperature of an automatic choice is that of
the same average of networks on inner folds of the training sets.

Otherwise three of five stratified folds per data set; a C-GRU with `mean+sum` and a learned
baseline. Printed are the mean log losses of the logits as trained, divided by the temperature of
single networks on inner folds, and divided by the temperature that the estimator uses for an
average of networks.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from capnets.estimators import SetClassifier
from capnets.ingest import read_npz

DATA = ("musk1", "mutagenesis", "elephant", "protein")


def rows_of_losses(lines: list[dict[str, Any]]) -> list[str]:
    """Return a table: log loss of the automatic choice and of class shares."""
    newest = {(x["data"], x["repeat"], x["fold"]): x for x in lines if x["model"] == "auto"}
    rows = ["| data | sets tested | automatic choice | class shares |", "|---|---|---|---|"]
    for name in sorted({x["data"] for x in newest.values()}):
        own = [x for x in newest.values() if x["data"] == name]
        y = np.concatenate([x["labels"] for x in own])
        if not np.isin(y, (0, 1)).all():
            continue
        logits = np.clip(np.concatenate([x["scores"] for x in own]), -15, 15)
        y, logits = y.reshape(len(y), -1), logits.reshape(len(y), -1)
        shares = np.clip(np.broadcast_to(y.mean(0), y.shape), 1e-6, 1 - 1e-6)
        both = [log_loss(y.ravel(), p.ravel(), labels=[0, 1]) for p in (expit(logits), shares)]
        rows.append(f"| {name} | {len(y)} | {both[0]:.3f} | {both[1]:.3f} |")
    return rows


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
    if sys.argv[1:] == ["--lines"]:
        records = Path(__file__).with_name("folds.jsonl").read_text().splitlines()
        print(*rows_of_losses([json.loads(line) for line in records]), sep="\n")
    else:
        main(sys.argv[1:])
