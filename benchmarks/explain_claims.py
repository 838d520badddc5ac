"""What explanations of trained networks show, where the answers are known.

python benchmarks/explain_claims.py    # writes results/explain/claims.{json,md} and a figure
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from explain_networks import explained_sets, trained

from capnets import metrics
from capnets.atomic import write_json, write_text, writing
from capnets.explain import (
    added_values,
    context,
    diagnose,
    interactions,
    predict,
    select,
    sensitivity,
    shapley_values,
)
from capnets.explain.pictures.figures import class_matrix
from capnets.runs import versions
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
        "five strongest": [[list(pair), round(value, 2)] for value, pair in upper[:5]],
        "next strongest": [list(upper[5][1]), round(upper[5][0], 2)],
    }


def signs(task: str) -> dict[str, Any]:
    """The mean contrast (within its set less alone) of instances whose class repeats, by class."""
    drawn, sets = explained_sets(task, 1000)
    classes = drawn.classes(sets)
    owners = np.repeat(np.arange(len(sets)), sets.sizes)
    counts = np.zeros((len(sets), 10), dtype=int)
    np.add.at(counts, (owners, classes), 1)
    repeats = counts[owners, classes] > 1
    contrast = context(trained(task, "c-gru").model, sets).contrast
    by_class = {
        str(c): round(float(contrast[repeats & (classes == c)].mean()), 2) for c in range(10)
    }
    right = -1 if task == "US" else 1
    return {
        "every class that is worth anything has the right sign": all(
            right * by_class[str(c)] > 0 for c in range(1, 10)
        ),
        "mean contrast by class": by_class,
    }


def shapley(task: str) -> dict[str, Any]:
    """Estimated values against the closed form, and against exact ones of the same network."""
    drawn, sets = explained_sets(task, 500)
    closed = drawn.spec.set_function.shapley(drawn.classes(sets), sets.offsets)
    model = trained(task, "c-gru").model
    exact = shapley_values(model, sets)
    sampled = shapley_values(model, sets, orders=64)
    averaged = added_values(model, sets, orders=64)
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
    """Unique Count: five of five distinct classes, against other ways to select."""
    drawn, sets = explained_sets("UC", 1000)
    classes = drawn.classes(sets).reshape(len(sets), 10)
    distinct = np.array([len(set(c)) for c in classes])
    rich = np.flatnonzero(distinct >= 5)
    sets, classes = sets.subset(rich), classes[rich]
    model = trained("UC", "c-gru").model
    result: dict[str, Any] = {"sets with five classes": len(rich)}
    for method in ("greedy", "lazy", "single", "optimum"):
        found = select(model, sets, k=5, method=method)
        right = [len(set(c[list(p)])) == 5 for c, p in zip(classes, found.chosen, strict=True)]
        result[method] = {
            "share with five classes": round(float(np.mean(right)), 4),
            "mean worth": round(float(found.worth.mean()), 3),
            "passes per set": round(found.passes / len(sets), 1),
        }
    return result


def janossy(task: str) -> dict[str, Any]:
    """What averaging predictions over orders does to the error."""
    _, sets = explained_sets(task, 2000)
    model = trained(task, "c-gru").model
    errors = {
        str(k): round(metrics.mse(sets.y, predict(model, sets, orders=k)), 4)
        for k in (1, 4, 16, 64)
    }
    spread = sensitivity(model, sets, orders=16).to_frame().round(4).to_dict("records")[0]
    return {"mean squared error over K orders": errors, "sensitivity": spread}


def kinds(task: str) -> dict[str, Any]:
    """Sub- or superadditive, sub- or supermodular, monotone under removal: shares of cases."""
    _, sets = explained_sets(task, 1000)
    found = diagnose(trained(task, "c-gru").model, sets).to_dict()
    return {name: round(value, 4) for name, value in found.items()}


def lines(value: Any, depth: int = 0) -> str:
    """Nested records as a list."""
    text = ""
    for name, item in value.items():
        inner = isinstance(item, dict)
        text += "  " * depth + f"- {name}" + ("\n" if inner else f": {item}\n")
        text += lines(item, depth + 1) if inner else ""
    return text


CLAIMS: dict[str, Callable[[], dict[str, Any]]] = {
    "networks": lambda: {t: trained(t, "c-gru").metrics["shared"] for t in TASKS},
    "pairs of US+S": pairs,
    "redundancy in US": partial(signs, "US"),
    "synergy in WTri": partial(signs, "WTri"),
    **{f"Shapley values, {t}": partial(shapley, t) for t in ("US", "WTri", "UC")},
    "selection in UC": selection,
    **{f"orders, {t}": partial(janossy, t) for t in TASKS},
    **{f"kind of function, {t}": partial(kinds, t) for t in TASKS},
}
HEAD = """# What explanations of trained networks show

`python benchmarks/explain_claims.py`: C-GRU on sets of digits.

"""

if __name__ == "__main__":
    torch.set_num_threads(1)
    result: dict[str, Any] = {"versions": versions()}
    for name, make in CLAIMS.items():
        result[name] = make()
        print(name, result[name], flush=True)
        write_json(OUT / "claims.json", result)
    write_text(OUT / "claims.md", HEAD + lines(result))
