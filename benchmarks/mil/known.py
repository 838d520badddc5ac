"""Measure added values on real features with known truth.

    python benchmarks/mil/known.py             # everything; resumes where it stopped
    python benchmarks/mil/known.py --questions atoms --folds 1
    python benchmarks/mil/known.py --table     # only draw KNOWN.md from known.jsonl

Four questions have a known answer:

count    recordings: the label is the number of bird species; the first segment of a species adds 1
any      13 labels, one per species: present or not; the first segment of a species adds 1
atoms    molecules: every atom contributes by a fixed formula of its features; the label is the sum
ratings  comments: every sentence has a rating of its own, a fixed formula of its vector; the label
         is their mean, so that a sentence moves the mean of the sentences before it

In the order read, values are compared with these. Averaged over orders (and for Shapley values) the
truth is their mean over all orders, in closed form. Networks learn from the labels of sets alone,
with the default preset; nothing is chosen on test folds. Values count from the network's baseline.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

LINES = HERE / "known.jsonl"
SPECIES, FOLDS, ORDERS = 13, 5, 8
#: Parts of a network's name behind a colon.
PARTS = ("aggregation", "baseline", "activation")
#: Molecules and comments of a question: a part of the data, so that a fold takes seconds.
PART = 500
NETWORKS = (
    "c-gru:sum:none",
    "c-deepset:sum:none",
    "c-deepset:sum:learned",
    "c-deepset:mean:learned",
    "c-deepset:mean+sum:learned",
    "c-pairs:sum:none",
    "c-pairs:sum:learned",
    "c-pool:sum:learned",
    "c-trees:sum:learned",
    "gru",
    "deepset",
    "attention",
)
#: Values of all instances x outputs, given the baseline: in the order read, and averaged.
Truth = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Question:
    """Sets, their labels (sets x outputs) and the values that instances have."""

    sets: Any
    y: np.ndarray
    in_order: Truth
    averaged: Truth


def birds(*, count: bool) -> Question:
    """Load recordings with their labelled segments; recordings without one are left out."""
    from bags import load_mil

    from capnets.sets import Sets, offsets_of

    sets = load_mil("birds")
    known = sets.classes[sets.index] > 0
    owners = np.repeat(np.arange(len(sets)), sets.sizes)[known]
    sizes = np.bincount(owners, minlength=len(sets))
    sets = Sets(
        sets.instances, sets.index[known], offsets_of(sizes[sizes > 0]), classes=sets.classes
    )
    present, in_order, averaged = truth(sets)
    if count:
        present, in_order, averaged = (
            a.sum(1, keepdims=True) for a in (present, in_order, averaged)
        )
    return Question(sets, present, lambda b: in_order, lambda b: averaged)


def truth(sets: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return presence (sets x species), and values in order and averaged (instances x species)."""
    species = sets.classes[sets.index] - 1
    kinds = np.eye(SPECIES)[species]
    owners = np.repeat(np.arange(len(sets)), sets.sizes)
    counts = np.zeros((len(sets), SPECIES))
    np.add.at(counts, owners, kinds)
    averaged = kinds / np.maximum(counts[owners], 1)
    _, first = np.unique(owners * SPECIES + species, return_index=True)
    in_order = np.zeros_like(kinds)
    in_order[first] = kinds[first]
    return (counts > 0).astype(float), in_order, averaged


def atoms() -> Question:
    """Load molecules whose atoms contribute a fixed linear formula of their features."""
    from bags import load_mil

    sets = _part(load_mil("thrombin"))
    each = _formula(sets)
    y = np.add.reduceat(each, sets.offsets[:-1])[:, None]
    return Question(sets, y, lambda b: each[:, None], lambda b: each[:, None])


def ratings() -> Question:
    """Load comments rated by the mean of their sentences' own ratings."""
    from run import load

    sets = _part(load("ted-sentences"))
    each = _formula(sets)
    groups = np.split(each, sets.offsets[1:-1])
    y = np.array([[own.mean()] for own in groups])

    def in_order(b: np.ndarray) -> np.ndarray:
        means = [np.cumsum(own) / np.arange(1, len(own) + 1) for own in groups]
        return np.concatenate([np.diff(m, prepend=b[0]) for m in means])[:, None]

    def averaged(b: np.ndarray) -> np.ndarray:
        return np.concatenate([shapley_of_mean(own, float(b[0])) for own in groups])[:, None]

    return Question(sets, y, in_order, averaged)


def shapley_of_mean(x: np.ndarray, empty: float) -> np.ndarray:
    """Return the Shapley values of the mean of numbers, where the empty set is worth `empty`.

    The k-th of n joins a mean m of k - 1 others on average and moves it by (x - m) / k.
    """
    n = len(x)
    if n == 1:
        return x - empty
    others = (x.sum() - x) / (n - 1)
    later = (1 / np.arange(2, n + 1)).sum()
    return np.asarray((x - empty + later * (x - others)) / n)


def _part(sets: Any) -> Any:
    from capnets.sets import Sets, offsets_of

    some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:PART])
    return Sets(some.instances, some.index, offsets_of(some.sizes))


def _formula(sets: Any) -> np.ndarray:
    """Return a number per instance, of unit variance: a fixed linear form of its features."""
    x = np.asarray(sets.instances[sets.index], dtype=float)
    x = (x - x.mean(0)) / np.maximum(x.std(0), 1e-6)
    found = x @ np.random.default_rng(1).normal(size=x.shape[1])
    return np.asarray(found / found.std())


QUESTIONS: dict[str, tuple[Callable[[], Question], tuple[str, ...]]] = {
    "count": (
        lambda: birds(count=True),  # a species more never lowers the number
        ("c-gru:sum:none:abs", "c-deepset:sum:none:abs", *NETWORKS),
    ),
    "any": (
        lambda: birds(count=False),
        ("c-independent:any:none", "c-deepset:any:none", *NETWORKS),
    ),
    "atoms": (atoms, ("c-linear:sum:none", "c-independent:sum:none", *NETWORKS)),
    "ratings": (
        ratings,
        ("c-linear:mean:learned", "c-independent:mean:learned", *NETWORKS),
    ),
}


def train(name: str, sets: Any, y: np.ndarray, seed: int) -> Any:
    """Train a network with the preset of the estimators, on amounts or probabilities."""
    from capnets.estimators import SetRegressor
    from capnets.learn import learn, make_plan

    network, *parts = name.split(":")
    estimator = SetRegressor(network, random_state=seed)
    problem = estimator.problem(sets, y)
    plan = make_plan(problem, estimator.options())
    if parts:
        chosen = dict(zip(PARTS, parts, strict=False))
        plan = replace(plan, model=replace(plan.model, **chosen))
    if parts[:1] == ["any"]:
        plan = replace(plan, loss="bernoulli")
    return learn(problem, plan)[0]


def explanations(name: str, model: Any, sets: Any, output: int) -> Iterator[tuple[str, str, Any]]:
    """Yield explanations: their name, the truth they are compared with, and the result."""
    from explain_peers import attention_weights, gradient_times_input

    from capnets.explain import explain, shapley_values

    yield "added values", "order", explain(model, sets, output=output)
    yield "mean added values", "averaged", explain(model, sets, orders=ORDERS, output=output)
    if model.closed_form:
        yield "Shapley values", "averaged", shapley_values(model, sets, output=output)
    if name == "gru":
        found = shapley_values(model, sets, orders=ORDERS, output=output)
        yield "sampled Shapley values", "averaged", found
    if ":" not in name:
        yield "gradient x input", "averaged", gradient_times_input(model, sets, output=output)
    if name == "attention":
        each = [attention_weights(m, sets, output=output) for m in getattr(model, "each", [model])]
        mean = np.mean([e.values for e in each], axis=0)
        yield "attention weights", "averaged", replace(each[0], values=mean)


def measure(question: Question, name: str, train_on: Any, test_on: Any, seed: int) -> Any:
    """Train on some sets; measure predictions and values on others."""
    from capnets.evaluate import predict
    from capnets.explain.evaluation import removal_curve

    sets, y = question.sets, question.y
    began = time.process_time()
    label = y[train_on, 0] if y.shape[1] == 1 else y[train_on]
    model = train(name, sets.subset(train_on), label, seed)
    seconds = time.process_time() - began
    held = sets.subset(test_on)
    rows = np.concatenate([np.arange(sets.offsets[k], sets.offsets[k + 1]) for k in test_on])
    b = model.baseline.detach().numpy()
    expected = {"order": question.in_order(b)[rows], "averaged": question.averaged(b)[rows]}
    prediction = predict(model, held).reshape(len(held), -1)
    labels = y[test_on]
    error = ((prediction - labels) ** 2).sum() / ((labels - labels.mean(0)) ** 2).sum()
    values: dict[str, list[float]] = {}
    areas: dict[str, tuple[float, float]] = {}
    with torch.no_grad():
        for output in range(labels.shape[1]):
            for method, against, found in explanations(name, model, held, output):
                off = np.abs(found.values - expected[against][:, output]).mean()
                values.setdefault(method, []).append(float(off))
                if labels.shape[1] == 1:
                    curves = [removal_curve(model, held, found, insert=i) for i in (False, True)]
                    areas[method] = (curves[0].aopc, curves[1].aopc)
    return {
        "cpu_seconds": round(seconds, 1),
        "r2": 1 - float(error),
        "value_error": {method: float(np.mean(v)) for method, v in values.items()},
        "areas": areas,
    }


def lines() -> list[dict[str, Any]]:
    """Read the lines that are there."""
    if not LINES.exists():
        return []
    return [json.loads(x) for x in LINES.read_text().splitlines() if x.endswith("}")]


def run(questions: list[str], networks: list[str] | None, folds: int) -> None:
    """Run every fold without a line, fold by fold, so that early tables are fair."""
    from sklearn.model_selection import KFold

    torch.set_num_threads(1)
    done = {(x["question"], x["network"], x["fold"]) for x in lines()}
    asked = {name: QUESTIONS[name][0]() for name in questions}
    for fold in range(folds):
        for name, question in asked.items():
            split = KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(len(question.sets)))
            train_on, test_on = list(split)[fold]
            for network in QUESTIONS[name][1]:
                if (name, network, fold) in done or network not in (networks or [network]):
                    continue
                about = {"question": name, "network": network, "fold": fold}
                found = about | measure(question, network, train_on, test_on, fold)
                with LINES.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(name, network, fold, found["r2"], found["value_error"], flush=True)


HEAD = """\
# Values with known truth

Made by `python benchmarks/mil/known.py`. R²: of the predictions, on test sets. Value error: mean
absolute difference from the known value of an instance, in the order read ("added values") or
averaged over all orders (all others). Deletion and insertion: areas by real removal, larger is
better; questions with one label only. Post-hoc methods: differences between prefixes of `gru`,
`deepset` and `attention`, sampled Shapley values, gradients, attention weights.

`count`, `any`: number of bird species in a recording, and presence of each; a segment adds 1 if it
is the first of its species. `atoms`: 500 molecules, a fixed formula per atom, summed. `ratings`:
500 comments, a fixed formula per sentence, averaged.
"""


def write_table() -> None:
    """Draw KNOWN.md."""
    parts = [HEAD]
    found = lines()
    for question, (_, networks) in QUESTIONS.items():
        mine = [x for x in found if x["question"] == question]
        if not mine:
            continue
        parts += [
            f"\n## {question}\n",
            "| network | values | R² | value error | deletion | insertion | folds |",
            "|---|---|---|---|---|---|---|",
        ]
        for name in networks:
            own = [x for x in mine if x["network"] == name]
            for method in own[0]["value_error"] if own else []:
                r2 = np.mean([x["r2"] for x in own])
                off = np.mean([x["value_error"][method] for x in own])
                areas = [x["areas"][method] for x in own if method in x["areas"]]
                cells = [f"{a:.3f}" for a in np.mean(areas, axis=0)] if areas else ["", ""]
                parts.append(
                    f"| {name} | {method} | {r2:.3f} | {off:.3f} | {cells[0]} | {cells[1]} "
                    f"| {len(own)} |"
                )
    (HERE / "KNOWN.md").write_text("\n".join(parts) + "\n")


def main() -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--networks", nargs="+", help="only these")
    parser.add_argument("--folds", type=int, default=FOLDS, help="only the first ones")
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    if not given.table:
        run(given.questions, given.networks, given.folds)
    write_table()


if __name__ == "__main__":
    main()
