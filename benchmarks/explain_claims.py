"""Test claims about explanations on tasks with known answers.

python benchmarks/explain_claims.py    # writes results/explain/claims.{json,md} and a figure
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from capnets.estimators.averaging import mean_prediction
from explain_networks import explained_sets, trained

from capnets import metrics
from capnets.explain import diagnose, explain, interactions, leave_one_out, select, shapley_values
from capnets.explain.render.figures import class_matrix
from capnets.files import write_json, write_text, writing
from capnets.runs import versions
from capnets.sets.orders import Orders
from capnets.sets.ragged import owners_of
from capnets.tasks.functions import PAIRS

OUT = Path("results/explain")
TASKS = ("US", "WTri", "UC", "US+S")


def pairs() -> dict[str, Any]:
    """US+S: the strongest class pairs of the interaction matrix must be P."""
    drawn, sets = explained_sets("US+S", 400)
    model = trained("US+S", "c-gru").model
    found = interactions(model, sets)
    matrix = found.by_class(drawn.classes(sets))
    upper = sorted(
        ((matrix[a, b], (a, b)) for a in range(10) for b in range(a + 1, 10)), reverse=True
    )
    with writing(OUT / "interactions.png") as path:
        class_matrix(matrix, label="mean interaction").savefig(path, format="png")
    return {
        "exactly P": {pair for _, pair in upper[:5]} == set(PAIRS),
        "five strongest": {f"{a},{b}": round(float(v), 2) for v, (a, b) in upper[:5]},
        "next strongest": {f"{a},{b}": round(float(v), 2) for v, (a, b) in upper[5:6]},
    }


def signs(task: str) -> dict[str, Any]:
    """Compute the mean contrast (in the set minus alone) of repeated instances, by class."""
    drawn, sets = explained_sets(task, 1000)
    classes = drawn.classes(sets)
    owners = owners_of(sets.sizes)
    counts = np.zeros((len(sets), 10), dtype=int)
    np.add.at(counts, (owners, classes), 1)
    repeats = counts[owners, classes] > 1
    contrast = leave_one_out(trained(task, "c-gru").model, sets).contrast
    means = [float(contrast[repeats & (classes == c)].mean()) for c in range(10)]
    right = -1 if task == "US" else 1
    return {
        "right sign for 1 to 9": all(right * mean > 0 for mean in means[1:]),
        **{str(c): round(mean, 2) for c, mean in enumerate(means)},
    }


def shapley(task: str) -> dict[str, Any]:
    """Estimated values against the closed form, and against exact ones of the same network."""
    drawn, sets = explained_sets(task, 500)
    closed = drawn.spec.set_function.shapley(drawn.classes(sets), sets.offsets)
    model = trained(task, "c-gru").model
    exact = shapley_values(model, sets)
    sampled = shapley_values(model, sets, orders=64)
    averaged = explain(model, sets, orders=64)
    assert sampled.errors is not None
    z = np.abs(sampled.values - exact.values) / np.maximum(sampled.errors, 1e-9)
    return {
        "error, sampled (64 orders)": round(metrics.mae(closed, sampled.values), 3),
        "error, exact of the network": round(metrics.mae(closed, exact.values), 3),
        "error, mean added values (64 orders)": round(metrics.mae(closed, averaged.values), 3),
        "sampled within 3 standard errors of exact": round(float((z <= 3).mean()), 4),
        "prediction changes with order by": round(float(averaged.prediction_spreads.mean()), 3),
    }


def selection() -> dict[str, Any]:
    """Compare selections on Unique Count: five of five distinct classes."""
    drawn, sets = explained_sets("UC", 1000)
    classes = drawn.classes(sets).reshape(len(sets), 10)
    distinct = np.array([len(set(c)) for c in classes])
    rich = np.flatnonzero(distinct >= 5)
    sets, classes = sets.subset(rich), classes[rich]
    model = trained("UC", "c-gru").model
    result: dict[str, Any] = {}
    for method in ("greedy", "lazy", "single", "optimum"):
        found = select(model, sets, k=5, method=method)
        right = [len(set(c[list(p)])) == 5 for c, p in zip(classes, found.positions, strict=True)]
        result[method] = {
            "sets": len(rich),
            "share with five classes": round(float(np.mean(right)), 4),
            "mean value": round(float(found.values.mean()), 3),
            "passes per set": round(found.passes / len(sets), 1),
        }
    return result


def orders(task: str) -> dict[str, Any]:
    """Measure the error of predictions averaged over K orders, and the spread."""
    _, sets = explained_sets(task, 2000)
    model = trained(task, "c-gru").model
    errors = {
        f"MSE, K = {k}": round(
            metrics.mse(sets.y, mean_prediction(model, sets, Orders.random(k))[:, 0]), 4
        )
        for k in (1, 4, 16, 64)
    }
    found = explain(model, sets, orders=16)
    assert found.prediction_spreads is not None
    assert found.spreads is not None
    return {
        **errors,
        "spread of a prediction over orders": round(float(found.prediction_spreads.mean()), 3),
        "spread of predictions over sets": round(float(found.predictions.std()), 3),
        "spread of a value over orders": round(float(found.spreads.mean()), 3),
    }


def kinds(task: str) -> dict[str, Any]:
    """Sub- or superadditive, sub- or supermodular, monotone under removal: shares of cases."""
    _, sets = explained_sets(task, 1000)
    found = diagnose(trained(task, "c-gru").model, sets).to_dict()
    return {name: round(value, 4) for name, value in found.items()}


def section(name: str, value: dict[str, Any]) -> str:
    """Format a heading with a table (records by name) or a list (one record)."""
    text = f"\n## {name}\n\n{ABOUT[name]}\n\n"
    if all(isinstance(item, dict) for item in value.values()):
        head = list(next(iter(value.values())))
        text += "| | " + " | ".join(head) + " |\n|" + "---|" * (len(head) + 1) + "\n"
        for row, cells in value.items():
            text += f"| {row} | " + " | ".join(str(cells[h]) for h in head) + " |\n"
        return text
    return text + "".join(f"- {key}: {item}\n" for key, item in value.items())


def of_tasks(make: Callable[[str], dict[str, Any]], *tasks: str) -> Callable[[], dict[str, Any]]:
    """Answer the same question for several tasks."""
    return lambda: {task: make(task) for task in tasks}


def quality(task: str) -> dict[str, Any]:
    """Return the test error on new sets of the training images."""
    return {k: round(v, 3) for k, v in trained(task, "c-gru").metrics["shared"].items()}


CLAIMS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "Networks": (
        "C-GRU on sets of one to ten digits; new sets of the same pictures.",
        of_tasks(quality, *TASKS),
    ),
    "Pairs": (
        "US+S has a bonus for five pairs of classes, P = {0,6}, {1,3}, {2,9}, {4,7}, {5,8}. The "
        "strongest interactions between classes (exact, 400 sets of ten):",
        pairs,
    ),
    "Redundancy and synergy": (
        "Value of an instance within its set minus its value alone, where its class repeats; means "
        "by class.\n"
        "US is redundant (negative), WTri synergistic (positive); a zero adds nothing in either.",
        of_tasks(signs, "US", "WTri"),
    ),
    "Shapley values": (
        "Mean absolute distance from the closed forms c/k (US), c(k+1)/2 (WTri), 1/k (UC); 500 "
        "sets of ten. *exact*: the network's own Shapley values, from all subsets.",
        of_tasks(shapley, "US", "WTri", "UC"),
    ),
    "Selection": (
        "Five instances from sets of ten that have at least five classes, by the network of Unique "
        "Count.",
        selection,
    ),
    "Orders": (
        "Predictions averaged over K random orders (an order and its reverse each): sets of ten.",
        of_tasks(orders, *TASKS),
    ),
    "Kinds of functions": (
        "Shares of randomly drawn cases; the tolerance is 2 % of the mean prediction.",
        of_tasks(kinds, *TASKS),
    ),
}
ABOUT = {name: about for name, (about, _) in CLAIMS.items()}

if __name__ == "__main__":
    torch.set_num_threads(1)
    result: dict[str, Any] = {"versions": versions()}
    text = "# What explanations of trained networks show\n\n`python benchmarks/explain_claims.py`\n"
    for name, (_, make) in CLAIMS.items():
        result[name] = make()
        text += section(name, result[name])
        print(section(name, result[name]), flush=True)
    write_json(OUT / "claims.json", result)
    write_text(OUT / "claims.md", text)
