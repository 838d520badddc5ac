"""Measure added values on real features with known truth: bird species in recordings.

    python benchmarks/mil/known.py             # everything; resumes where it stopped
    python benchmarks/mil/known.py --table     # only draw KNOWN.md from known.jsonl

Each labelled segment of a recording has a known species. Two questions have a known answer:

count   the label is the number of species; a segment adds 1 if it is the first of its species
any     13 labels, one per species: present or not; the first segment of a species adds 1

In the order read, values are compared with these. Averaged over orders (and for Shapley values) the
truth is 1 / number of segments of that species in the recording. Networks learn from the labels of
recordings alone, with the default preset; nothing is chosen on test folds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

LINES = HERE / "known.jsonl"
SPECIES, FOLDS, ORDERS = 13, 5, 8
NETWORKS = (
    "c-gru:sum:none",
    "c-deepset:sum:none",
    "c-deepset:sum:learned",
    "c-deepset:mean:learned",
    "c-deepset:mean+sum:learned",
    "c-pairs:sum:none",
    "c-pairs:sum:learned",
    "gru",
    "deepset",
    "attention",
)
QUESTIONS = {"count": NETWORKS, "any": ("c-deepset:any:none", *NETWORKS)}


def labelled() -> Any:
    """Load the recordings with their labelled segments; recordings without one are left out."""
    from capnets.sets import Sets, offsets_of
    from capnets.tasks.mil import load_mil

    sets = load_mil("birds")
    known = sets.classes[sets.index] > 0
    owners = np.repeat(np.arange(len(sets)), sets.sizes)[known]
    sizes = np.bincount(owners, minlength=len(sets))
    offsets = offsets_of(sizes[sizes > 0])
    return Sets(sets.instances, sets.index[known], offsets, classes=sets.classes)


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


def train(name: str, sets: Any, y: np.ndarray, seed: int) -> Any:
    """Train a network with the preset of the estimators, on amounts or probabilities."""
    from capnets.estimators import SetRegressor
    from capnets.learn import learn, make_plan

    network, *parts = name.split(":")
    estimator = SetRegressor(network, random_state=seed)
    problem = estimator.problem(sets, y)
    plan = make_plan(problem, estimator.options())
    if parts:
        plan = replace(plan, model=replace(plan.model, aggregation=parts[0], baseline=parts[1]))
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


def measure(question: str, name: str, sets: Any, train_on: Any, test_on: Any, seed: int) -> Any:
    """Train on some recordings; measure predictions and values on others."""
    from capnets.evaluate import predict
    from capnets.explain.evaluation import removal_curve

    present, in_order, averaged = truth(sets)
    y = present.sum(1) if question == "count" else present
    began = time.process_time()
    model = train(name, sets.subset(train_on), y[train_on], seed)
    seconds = time.process_time() - began
    held = sets.subset(test_on)
    rows = np.concatenate([np.arange(sets.offsets[k], sets.offsets[k + 1]) for k in test_on])
    expected = {"order": in_order[rows], "averaged": averaged[rows]}
    if question == "count":
        expected = {key: value.sum(1, keepdims=True) for key, value in expected.items()}
    prediction = predict(model, held).reshape(len(held), -1)
    labels = y[test_on].reshape(len(held), -1)
    error = ((prediction - labels) ** 2).sum() / ((labels - labels.mean(0)) ** 2).sum()
    values: dict[str, list[float]] = {}
    areas: dict[str, tuple[float, float]] = {}
    with torch.no_grad():
        for output in range(labels.shape[1]):
            for method, against, found in explanations(name, model, held, output):
                off = np.abs(found.values - expected[against][:, output]).mean()
                values.setdefault(method, []).append(float(off))
                if question == "count":
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


def run(questions: list[str]) -> None:
    """Run every fold without a line, fold by fold, so that early tables are fair."""
    from sklearn.model_selection import KFold

    torch.set_num_threads(1)
    sets = labelled()
    done = {(x["question"], x["network"], x["fold"]) for x in lines()}
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(len(sets))))
    for fold, (train_on, test_on) in enumerate(folds):
        for question in questions:
            for name in QUESTIONS[question]:
                if (question, name, fold) in done:
                    continue
                about = {"question": question, "network": name, "fold": fold}
                found = about | measure(question, name, sets, train_on, test_on, fold)
                with LINES.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(question, name, fold, found["r2"], found["value_error"], flush=True)


def write_table() -> None:
    """Draw KNOWN.md."""
    parts = [
        "# Values with known truth: bird species in recordings\n",
        "Made by `python benchmarks/mil/known.py`. R²: of the predictions, on test recordings.",
        "Value error: mean absolute difference from the known value of a segment (1 for the first",
        "of its species in the order read; 1 / number of segments of the species on average).",
        "Deletion and insertion: areas by real removal, larger is better; `count` only.\n",
    ]
    found = lines()
    for question in QUESTIONS:
        mine = [x for x in found if x["question"] == question]
        if not mine:
            continue
        parts += [
            f"\n## {question}\n",
            "| network | values | R² | value error | deletion | insertion | folds |",
            "|---|---|---|---|---|---|---|",
        ]
        for name in QUESTIONS[question]:
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
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    if not given.table:
        run(given.questions)
    write_table()


if __name__ == "__main__":
    main()
