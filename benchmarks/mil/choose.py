"""What works on few sets: settings compared by cross-validation, one JSON line each.

    python benchmarks/mil/choose.py --data mutagenesis elephant --dropout 0 0.2 0.5

Of the comments (ted, ted-sentences) only the half that run.py trains on is looked at.
A choice for a data set is made by looking at the others only; see EXPERIMENTS.md.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from typing import Any

import numpy as np
import torch
from run import PROTOCOLS, load, splits
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from capnets.estimators import SetClassifier, SetRegressor
from capnets.sets import Sets

# Other folds than those of run.py, but of the same sets: what is chosen by looking at a data set
# has seen all of its test sets, and is no fair setting for that data set.
SEED = 100


def main() -> None:
    """Every combination, on every data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["mutagenesis", "musk1", "elephant"])
    parser.add_argument("--models", nargs="+", default=["c-gru"])
    parser.add_argument("--hidden", nargs="+", type=int, default=[16])
    parser.add_argument("--layers", nargs="+", type=int, default=[1])
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.2, 0.5])
    parser.add_argument("--epochs", nargs="+", type=int, default=[60])
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = ("model", "hidden", "layers", "dropout", "epochs")
    choices = product(given.models, given.hidden, given.layers, given.dropout, given.epochs)
    for data, choice in product(given.data, list(choices)):
        settings = dict(zip(names, choice, strict=True))
        sets = load(data)
        measure = classes if PROTOCOLS[data].classes else amounts
        if PROTOCOLS[data].folds == 1:
            sets = sets.subset(next(splits(data, sets, 0))[0])
        shared = {"members": given.members, "orders": 4}
        result = measure(sets, given.folds, {**shared, **settings})
        print(json.dumps({"data": data, **settings, **shared, **result}), flush=True)


def classes(sets: Sets, folds: int, settings: dict[str, Any]) -> dict[str, float]:
    """Accuracy over all sets, and the mean area under the ROC curve of the folds."""
    y = np.asarray(sets.y).astype(int)
    scores, areas = np.zeros(len(sets)), []
    parts = StratifiedKFold(folds, shuffle=True, random_state=SEED).split(y, y)
    for fold, (train, test) in enumerate(parts):
        model = SetClassifier(random_state=fold, **settings)
        model.fit(sets.subset(train), y[train])
        scores[test] = model.decision_function(sets.subset(test))
        areas.append(roc_auc_score(y[test], scores[test]))
    return {"accuracy": float(((scores > 0) == y).mean()), "auc": float(np.mean(areas))}


def amounts(sets: Sets, folds: int, settings: dict[str, Any]) -> dict[str, float]:
    """R² and mean absolute error over all sets."""
    y, scores = np.asarray(sets.y), np.zeros(len(sets))
    parts = KFold(folds, shuffle=True, random_state=SEED).split(y)
    for fold, (train, test) in enumerate(parts):
        model = SetRegressor(random_state=fold, **settings).fit(sets.subset(train))
        scores[test] = model.predict(sets.subset(test))
    return {"r2": float(r2_score(y, scores)), "mae": float(np.abs(y - scores).mean())}


if __name__ == "__main__":
    main()
