"""Real sets: every network of the table on every data set, cross-validated, one JSON line per fold.

    python benchmarks/mil/run.py                      # everything; goes on where it stopped
    python benchmarks/mil/run.py --data musk1 --models c-gru --repeats 1
    python benchmarks/mil/run.py --table              # only draw README.md from the lines

Folds are made of whole sets and depend only on the data set and the repeat, so all networks see the
same ones. Estimators are used as they come: the preset for few sets, nothing tuned per data set.
A line is written when its fold is done; a fold that has its line is not trained again, unless the
preset has changed since: then its line is stale, and the table leaves it out when a newer one is
there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from capnets.sets import Sets

HERE = Path(__file__).parent
LINES = HERE / "folds.jsonl"
MODELS = ("c-gru", "c-lstm", "c-deepset", "gru", "deepset", "attention", "set-transformer")


@dataclass(frozen=True)
class Protocol:
    """How a data set is split, and whether its labels are classes."""

    folds: int
    repeats: int
    classes: bool


PROTOCOLS = {
    "musk1": Protocol(10, 5, True),
    "musk2": Protocol(10, 5, True),
    "elephant": Protocol(10, 5, True),
    "mutagenesis": Protocol(10, 5, True),
    "thrombin": Protocol(5, 1, False),
    "ted": Protocol(1, 1, False),
    "ted-sentences": Protocol(1, 1, False),
    "womens-clothing": Protocol(1, 1, False),
}
#: Documents whose sentences are vectors of a language model; "ted" has bags of words.
DOCUMENTS = {"ted-sentences": "ted-comments", "womens-clothing": "womens-clothing"}


def load(name: str) -> Any:
    """The sets of a data set."""
    from capnets.tasks.mil import MIL, load_mil, load_wmil

    if name in MIL:
        return load_mil(name)
    if name not in DOCUMENTS:
        return load_wmil("ted_comments")
    from capnets.tasks.sentiment import ReviewSpec, make_reviews

    task = make_reviews(ReviewSpec(DOCUMENTS[name]))
    # Put together again, in the order of the file: this table has splits of its own.
    whole = Sets.concatenate([task.train, task.valid, task.test])
    return whole.subset(np.argsort(whole.ids))


def splits(name: str, sets: Any, repeat: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test sets of every fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    protocol = PROTOCOLS[name]
    everything = np.arange(len(sets))
    if name == "womens-clothing":
        drawn = np.random.default_rng(repeat).permutation(len(sets))
        yield drawn[:4000], drawn[4000:6000]
    elif name.startswith("ted"):  # first half to train, second half to test
        yield everything[: len(sets) // 2], everything[len(sets) // 2 :]
    elif protocol.classes:
        folds = StratifiedKFold(protocol.folds, shuffle=True, random_state=repeat)
        yield from folds.split(everything, sets.y)
    else:
        folds = KFold(protocol.folds, shuffle=True, random_state=repeat)
        yield from folds.split(everything)


def one_fold(name: str, sets: Any, model: str, train: Any, test: Any, seed: int) -> dict[str, Any]:
    """Train and measure; scores and labels of the test sets are kept too."""
    from capnets.estimators import SetClassifier, SetRegressor

    held = sets.subset(test)
    began = time.process_time()
    if PROTOCOLS[name].classes:
        estimator: Any = SetClassifier(model, random_state=seed)
        estimator.fit(sets.subset(train), np.asarray(sets.y)[train].astype(int))
        scores = estimator.decision_function(held)
    else:
        estimator = SetRegressor(model, random_state=seed).fit(sets.subset(train))
        scores = estimator.predict(held)
    return {
        # Of the processor: what the clock says depends on what else the machine does.
        "cpu_seconds": round(time.process_time() - began, 1),
        "labels": np.asarray(held.y).tolist(),
        "scores": np.round(scores, 5).tolist(),
        "network": estimator.spec_.to_dict(),
        "recipe": estimator.recipe_.to_dict(),
        "orders": estimator.n_orders_,
    }


def baseline(name: str, sets: Any, train: Any, test: Any) -> dict[str, Any]:
    """Pooled features (mean and maximum; for thrombin the minimum too) and a plain model."""
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
    if PROTOCOLS[name].classes:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        scores = model.fit(pooled[train], y[train].astype(int)).decision_function(pooled[test])
    elif name == "thrombin":
        forest = RandomForestRegressor(300, n_jobs=1, random_state=0)
        scores = forest.fit(pooled[train], y[train]).predict(pooled[test])
    else:
        scores = RidgeCV(np.logspace(-2, 4, 13)).fit(pooled[train], y[train]).predict(pooled[test])
    return {"labels": y[test].tolist(), "scores": np.round(scores, 5).tolist()}


def known() -> dict[tuple[str, str, int, int], dict[str, Any]]:
    """The newest line of every fold, in the order they were written."""
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
    """Whether a fold was trained in another way than it would be now."""
    from capnets.training.presets import preset_for
    from capnets.training.recipe import RECIPES

    if line["model"] == "baseline":
        return False
    preset = preset_for(len(train), sets.in_features)
    names = ("hidden", "layers", "dropout", "members")
    return (
        any(line["network"][name] != getattr(preset, name) for name in names)
        or line["recipe"] != RECIPES[preset.recipe].to_dict()
        or line["orders"] != preset.orders
    )


def run(data: list[str], models: list[str], repeats: int | None) -> None:
    """Every fold that has no line yet; repeat by repeat, so that an early look is a fair one."""
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
            else:
                result = one_fold(name, sets, model, train, test, 1000 * repeat + fold)
            done[key] = about | result
            with LINES.open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
            print(*key, result.get("cpu_seconds", ""), flush=True)


def main() -> None:
    """Run what is asked for, then write the table."""
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
