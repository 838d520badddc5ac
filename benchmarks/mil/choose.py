"""What works on few sets: settings compared by cross-validation, one JSON line each.

    python benchmarks/mil/choose.py --data mutagenesis elephant --dropout 0 0.2 0.5

A choice for a data set is made by looking at the others only; see EXPERIMENTS.md.
"""

from __future__ import annotations

import argparse
import json
from itertools import product

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from capnets.estimators import SetClassifier
from capnets.tasks.mil import load_mil

# Other folds than those of run.py, but of the same sets: what is chosen by looking at a data set
# has seen all of its test sets, and is no fair setting for that data set.
FOLDS = StratifiedKFold(5, shuffle=True, random_state=100)


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
    given = parser.parse_args()
    names = ("model", "hidden", "layers", "dropout", "epochs")
    choices = product(given.models, given.hidden, given.layers, given.dropout, given.epochs)
    for data, choice in product(given.data, list(choices)):
        settings = dict(zip(names, choice, strict=True))
        sets = load_mil(data)
        y = np.asarray(sets.y).astype(int)
        scores, areas = np.zeros(len(sets)), []
        for fold, (train, test) in enumerate(FOLDS.split(y, y)):
            model = SetClassifier(members=given.members, orders=4, random_state=fold, **settings)
            model.fit(sets.subset(train), y[train])
            scores[test] = model.decision_function(sets.subset(test))
            areas.append(roc_auc_score(y[test], scores[test]))
        result = {"accuracy": float(((scores > 0) == y).mean()), "auc": float(np.mean(areas))}
        print(json.dumps({"data": data, **settings, **result}), flush=True)


if __name__ == "__main__":
    main()
