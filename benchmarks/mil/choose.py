"""Compare settings for small data, on training sets only; one JSON line per training.

    python benchmarks/mil/choose.py --data thrombin --model c-gru c-deepset --hidden 16 32
    python benchmarks/mil/choose.py --data elephant --members 5 --orders 8 --stop no yes
    python benchmarks/mil/choose.py --table      # only print the means of the lines that are there

Cross-validation runs inside the training part of the first fold of run.py, so the test sets of that
fold, and the test half of the comments, are never used. The other folds of run.py test on sets that
were used here: for these data sets they are not a fair test of the choice.

One training gives four results: for a single member (mean over members) and for the ensemble, in
one order and in several. A line is written when a training is done; recorded trainings are skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from run import PROTOCOLS, load, splits
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from capnets.estimators import SetClassifier, SetRegressor
from capnets.explain import Orders
from capnets.learn.averaging import mean_prediction
from capnets.models.ensemble import Ensemble
from capnets.sets import Sets

LINES = Path(__file__).parent / "choose.jsonl"
#: What is varied, and its usual value.
GRID: dict[str, tuple[type, list[Any]]] = {
    "model": (str, ["c-gru"]),
    "hidden": (int, [16]),
    "layers": (int, [1]),
    "dropout": (float, [0.0]),
    "epochs": (int, [60]),
    "batch_size": (int, [32]),
    "start": (str, ["torch"]),
    "stop": (str, ["no"]),
}


def main() -> None:
    """Every combination on every data set, fold by fold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=PROTOCOLS, default=["elephant"])
    for name, (kind, usual) in GRID.items():
        parser.add_argument(f"--{name.replace('_', '-')}", nargs="+", type=kind, default=usual)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--orders", type=int, default=4)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--first", type=int, help="only so many of the folds")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    given = parser.parse_args()
    if not given.table:
        run(given)
    show(known())


def run(given: argparse.Namespace) -> None:
    """Train what has no line yet."""
    torch.set_num_threads(1)
    done = {_key(line) for line in known()}
    for data in given.data:
        whole = load(data)
        sets = whole.subset(next(splits(data, whole, 0))[0])
        for fold, (train, test) in enumerate(_folds(data, sets, given.folds)):
            if fold == given.first:
                break
            for choice in product(*(getattr(given, name) for name in GRID)):
                line: dict[str, Any] = {"data": data, "fold": fold, "folds": given.folds}
                line |= dict(zip(GRID, choice, strict=True))
                line |= {"members": given.members, "orders": given.orders}
                if _key(line) in done:
                    continue
                began = time.process_time()
                line["results"] = results(data, sets.subset(train), sets.subset(test), line)
                line["cpu_seconds"] = round(time.process_time() - began, 1)
                with LINES.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                show([line])


def results(data: str, train: Sets, test: Sets, choice: dict[str, Any]) -> list[dict[str, Any]]:
    """Train on some sets, measure on others: one member and all, one order and several."""
    kind = SetClassifier if PROTOCOLS[data].classes else SetRegressor
    names = ("hidden", "layers", "dropout", "epochs", "members", "orders")
    estimator = kind(
        choice["model"],
        random_state=choice["fold"],
        early_stopping=choice["stop"] == "yes",
        recipe={k: choice[k] for k in ("batch_size", "start")},
        **{k: choice[k] for k in names},
    )
    y = np.asarray(train.y)
    estimator.fit(train, y.astype(int) if PROTOCOLS[data].classes else y)
    model: Any = estimator.model_
    alone = model.each if isinstance(model, Ensemble) else [model]
    found = []
    for orders in sorted({1, choice["orders"]}):
        for networks in [alone] if len(alone) == 1 else [alone, [model]]:
            measured = [_measure(data, m, test, orders) for m in networks]
            means = {k: float(np.mean([x[k] for x in measured])) for k in measured[0]}
            members = 1 if networks is alone else len(alone)
            found.append({"members": members, "orders": orders, **means})
    return found


def _measure(data: str, model: Any, test: Sets, orders: int) -> dict[str, float]:
    y = np.asarray(test.y)
    scores = mean_prediction(model, test, Orders.averaging(orders))[:, 0]
    if PROTOCOLS[data].classes:
        area = float(roc_auc_score(y, scores))
        return {"accuracy": float(((scores > 0) == y).mean()), "auc": area}
    return {"r2": float(r2_score(y, scores)), "mae": float(np.abs(y - scores).mean())}


def _folds(data: str, sets: Sets, folds: int) -> Iterator[tuple[Any, Any]]:
    kind = StratifiedKFold if PROTOCOLS[data].classes else KFold
    yield from kind(folds, shuffle=True, random_state=100).split(np.arange(len(sets)), sets.y)


def known() -> list[dict[str, Any]]:
    """Return the recorded lines."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def _key(line: dict[str, Any]) -> str:
    """Return the settings of a training without its results."""
    return json.dumps({k: v for k, v in line.items() if k not in ("results", "cpu_seconds")})


def show(lines: list[dict[str, Any]]) -> None:
    """Means over the folds that are there."""
    together: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        about = {k: v for k, v in line.items() if k not in ("results", "cpu_seconds", "fold")}
        together.setdefault(json.dumps(about), []).append(line)
    for same in together.values():
        first = same[0]
        changed = [f"{k} {first[k]}" for k in GRID if [first[k]] != GRID[k][1]]
        seconds = np.mean([x["cpu_seconds"] for x in same])
        print(first["data"], *changed, f"({len(same)} of {first['folds']} folds, {seconds:.0f} s)")
        for k, result in enumerate(first["results"]):
            means = [
                f"{name} {np.mean([x['results'][k][name] for x in same]):.3f}"
                for name in list(result)[2:]
            ]
            print(f"    members {result['members']}, orders {result['orders']}:", *means)
    print(end="", flush=True)


if __name__ == "__main__":
    main()
