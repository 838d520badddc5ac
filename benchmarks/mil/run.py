"""Compare methods on real sets: cross-validated, one JSON line per fold.

    python benchmarks/mil/run.py                      # everything; resumes where it stopped
    python benchmarks/mil/run.py --data musk1 --models c-gru --repeats 1
    python benchmarks/mil/run.py --table              # only draw README.md from the lines

Folds are made of whole sets and depend only on the data set and the repeat, so all methods see the
same ones. Estimators are used as they come: the preset for the number of sets, nothing tuned per
data set; the head of the table says what was chosen on which sets. A network may be followed by
its aggregation, baseline and activation: `c-gru:mean:learned`, `c-gru:sum:none:abs` (the paper's).
Methods of others are in `peers.py`.

A line is written when its fold is done. A fold that has its line is not trained again unless the
preset has changed since; then the line is stale, and the table leaves it out once a newer one is
there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS, logit

from capnets.sets import Sets

HERE = Path(__file__).parent
LINES = HERE / "folds.jsonl"
VARIANTS = tuple(
    f"{name}:{aggregation}:learned"
    for aggregation in ("sum", "mean", "mean+sum")
    for name in ("c-gru", "c-deepset")
)
#: Parts of a network's name behind a colon.
PARTS = ("aggregation", "baseline", "activation")
NETWORKS = ("gru", "deepset", "attention", "set-transformer", "c-gru", "c-lstm", "c-deepset")
PAPER = ("c-gru:sum:none:abs", "c-deepset:sum:none:abs")
OTHERS = tuple(f"{name}:sum:learned" for name in ("c-pairs", "c-pool", "c-trees"))
MODELS = ("auto", *PEERS, *NETWORKS, *PAPER, *VARIANTS, *OTHERS)


@dataclass(frozen=True)
class Protocol:
    """Number of folds and repeats, and whether labels are classes."""

    folds: int
    repeats: int
    classes: bool


PROTOCOLS = {
    "musk1": Protocol(10, 5, True),
    "musk2": Protocol(10, 5, True),
    "elephant": Protocol(10, 5, True),
    "mutagenesis": Protocol(10, 5, True),
    "birds": Protocol(5, 1, True),
    "protein": Protocol(10, 3, True),
    "web1": Protocol(10, 3, True),
    "thrombin": Protocol(5, 1, False),
    "ted": Protocol(1, 1, False),
    "ted-sentences": Protocol(1, 1, False),
    "womens-clothing": Protocol(1, 1, False),
}
#: Documents whose sentences are vectors of a language model; "ted" has bags of words.
DOCUMENTS = {"ted-sentences": "ted-comments", "womens-clothing": "womens-clothing"}


def load(name: str) -> Any:
    """Load the sets of a data set."""
    from bags import MIL, load_mil, load_wmil

    if name in MIL:
        return load_mil(name)
    if name not in DOCUMENTS:
        return load_wmil("ted_comments")
    from capnets.tasks.sentiment import ReviewSpec, make_reviews

    task = make_reviews(ReviewSpec(DOCUMENTS[name]))
    # Concatenated in the order of the file: this table has its own splits.
    whole = Sets.concatenate([task.train, task.valid, task.test])
    return whole.subset(np.argsort(whole.ids))


def splits(name: str, sets: Any, repeat: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and test sets of every fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    protocol = PROTOCOLS[name]
    everything = np.arange(len(sets))
    if name == "womens-clothing":
        drawn = np.random.default_rng(repeat).permutation(len(sets))
        yield drawn[:4000], drawn[4000:6000]
    elif name.startswith("ted"):  # first half to train, second half to test
        yield everything[: len(sets) // 2], everything[len(sets) // 2 :]
    elif protocol.classes and np.ndim(sets.y) == 1:
        folds = StratifiedKFold(protocol.folds, shuffle=True, random_state=repeat)
        yield from folds.split(everything, sets.y)
    else:
        folds = KFold(protocol.folds, shuffle=True, random_state=repeat)
        yield from folds.split(everything)


def one_fold(name: str, sets: Any, model: str, train: Any, test: Any, seed: int) -> dict[str, Any]:
    """Train a network and return scores and labels of the test sets."""
    from capnets.estimators import SetClassifier, SetRegressor
    from capnets.learn import learn, make_plan
    from capnets.learn.averaging import mean_prediction
    from capnets.sets.orders import Orders

    network, *parts = model.split(":")
    classes, held = PROTOCOLS[name].classes, sets.subset(test)
    began = time.process_time()
    estimator: Any = (SetClassifier if classes else SetRegressor)(network, random_state=seed)
    y = np.asarray(sets.y)[train]
    problem = estimator.problem(sets.subset(train), y.astype(int) if classes else y)
    plan = make_plan(problem, estimator.options())
    if parts:
        spec = replace(plan.model, **dict(zip(PARTS, parts, strict=False)))
        plan = replace(plan, model=spec, loss="bernoulli" if parts[0] == "any" else plan.loss)
    trained, _ = learn(problem, plan)
    scores = mean_prediction(trained, held, Orders.averaging(plan.orders))
    scores = logit(scores) if plan.loss == "bernoulli" else scores
    scores = scores[:, 0] if scores.shape[1] == 1 else scores
    return {
        # Processor time: wall time depends on what else the machine does.
        "cpu_seconds": round(time.process_time() - began, 1),
        "labels": np.asarray(held.y).tolist(),
        "scores": np.round(scores, 5).tolist(),
        "network": plan.model.to_dict(),
        "recipe": plan.recipe.to_dict(),
        "orders": plan.orders,
    }


def automatic(name: str, sets: Any, train: Any, test: Any, seed: int) -> dict[str, Any]:
    """Let the estimator choose the network on the training sets."""
    from capnets.estimators import SetClassifier, SetRegressor

    classes, held = PROTOCOLS[name].classes, sets.subset(test)
    began = time.process_time()
    y = np.asarray(sets.y)[train]
    estimator: Any = (SetClassifier if classes else SetRegressor)(random_state=seed)
    estimator.fit(sets.subset(train), y.astype(int) if classes else y)
    scores = np.asarray(estimator.raw(held))
    return {
        "cpu_seconds": round(time.process_time() - began, 1),
        "labels": np.asarray(held.y).tolist(),
        "scores": np.round(scores[:, 0] if scores.shape[1] == 1 else scores, 5).tolist(),
        "chosen": estimator.spec_.to_dict(),
        "halves": np.round(np.asarray(estimator.raw(halved(held)))[:, 0], 5).tolist(),
    }


def halved(sets: Any) -> Any:
    """Return the first half of the instances of every set, rounded up."""
    rows = [sets.rows(k)[: (n + 1) // 2] for k, n in enumerate(sets.sizes)]
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    return Sets(sets.instances, np.concatenate(rows), offsets, feature_names=sets.feature_names)


def peer(name: str, sets: Any, model: str, train: Any, test: Any, seed: int) -> dict[str, Any]:
    """Train a method of others."""
    began = time.process_time()
    scores = PEERS[model](sets, train, test, classes=PROTOCOLS[name].classes, seed=seed)
    return {
        "cpu_seconds": round(time.process_time() - began, 1),
        "labels": np.asarray(sets.y)[test].tolist(),
        "scores": np.round(scores, 5).tolist(),
    }


def baseline(name: str, sets: Any, train: Any, test: Any) -> dict[str, Any]:
    """Train a plain model on pooled features (mean and maximum; for thrombin the minimum too)."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kinds = {"thrombin": (np.mean, np.max, np.min), "ted": (np.mean,)} | dict.fromkeys(
        DOCUMENTS, (np.mean,)
    )
    pools = kinds.get(name, (np.mean, np.max))
    pooled = np.stack(
        [np.concatenate([p(sets[k], axis=0) for p in pools]) for k in range(len(sets))]
    )
    y = np.asarray(sets.y)
    if PROTOCOLS[name].classes and y.ndim > 1:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        found = [
            model.fit(pooled[train], c[train].astype(int)).decision_function(pooled[test])
            for c in y.T
        ]
        scores = np.stack(found, axis=1)
    elif PROTOCOLS[name].classes:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        scores = model.fit(pooled[train], y[train].astype(int)).decision_function(pooled[test])
    elif name == "thrombin":
        forest = RandomForestRegressor(300, n_jobs=1, random_state=0)
        scores = forest.fit(pooled[train], y[train]).predict(pooled[test])
    else:
        scores = RidgeCV(np.logspace(-2, 4, 13)).fit(pooled[train], y[train]).predict(pooled[test])
    return {"labels": y[test].tolist(), "scores": np.round(scores, 5).tolist()}


def known() -> dict[tuple[str, str, int, int], dict[str, Any]]:
    """Return the newest line of every fold, in the order they were written."""
    if not LINES.exists():
        return {}
    from capnets.models import ModelSpec
    from capnets.training.recipe import Recipe

    found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    whole = [line for line in LINES.read_text().splitlines() if line.endswith("}")]
    for x in map(json.loads, whole):
        key = (x["data"], x["model"], x["repeat"], x["fold"])
        if "network" in x:  # settings that came later have their defaults
            x["network"] = ModelSpec.from_dict(x["network"]).to_dict()
            x["recipe"] = Recipe.from_dict(x["recipe"]).to_dict()
        found.pop(key, None)
        found[key] = x
    return found


def stale(line: dict[str, Any], sets: Any, train: Any) -> bool:
    """Return whether a fold would be trained differently now."""
    from capnets.training.presets import preset_for
    from capnets.training.recipe import recipe

    if "network" not in line:
        return False
    preset = preset_for(len(train), sets.in_features)
    names = ("hidden", "layers", "dropout", "members")
    trained = line["recipe"] | {"batch_instances": None}  # which follows from the features
    return (
        any(line["network"][name] != getattr(preset, name) for name in names)
        or trained != recipe(preset.recipe, epochs=preset.epochs).to_dict()
        or line["orders"] != preset.orders
    )


def run(data: list[str], models: list[str], repeats: int | None) -> None:
    """Run every fold without a line, repeat by repeat, so that early tables are fair."""
    import torch

    torch.set_num_threads(1)
    done = known()
    loaded = cache(load)
    most = max(PROTOCOLS[n].repeats for n in data) if repeats is None else repeats
    for repeat, name, model in product(range(most), data, models):
        if repeat >= PROTOCOLS[name].repeats:
            continue
        sets = loaded(name)
        for fold, (train, test) in enumerate(splits(name, sets, repeat)):
            key = (name, model, repeat, fold)
            if key in done and not stale(done[key], sets, train):
                continue
            about = dict(zip(("data", "model", "repeat", "fold"), key, strict=True))
            if model == "baseline":
                result = baseline(name, sets, train, test)
            elif model == "auto":
                result = automatic(name, sets, train, test, 1000 * repeat + fold)
            elif model in PEERS:
                result = peer(name, sets, model, train, test, 1000 * repeat + fold)
            else:
                result = one_fold(name, sets, model, train, test, 1000 * repeat + fold)
            done[key] = about | result
            with LINES.open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
            print(*key, result.get("cpu_seconds", ""), flush=True)


def main() -> None:
    """Run the requested folds, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--models", nargs="+", default=["baseline", *MODELS])
    parser.add_argument("--repeats", type=int, help="fewer than the protocol's")
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    if not given.table:
        run(given.data, given.models, given.repeats)
    from table import write_table

    write_table(known(), HERE / "README.md", MODELS, PROTOCOLS)


if __name__ == "__main__":
    main()
