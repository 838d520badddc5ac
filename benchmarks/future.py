"""Try what the paper names as future work, on small tasks with known added values.

    python benchmarks/future.py [--parts classes difference order graph] [--seeds 0 1]
    python benchmarks/future.py --table | --check

classes      labels as classes, cross-entropy, values without the absolute value
difference   v_i = |g(z_i) - g(z_(i-1)) + b| against v_i = |g(z_i)|
order        an order that is learned with the network
graph        sets of edges: the rank of a graph, a task beyond multiple instance learning

The tasks of the paper have 10,000 training sets of ten images (`patches`), 2,000 for validation and
2,000 for testing, under the protocol *shared*; the recipe is `muon`. One line per training is
appended to benchmarks/future.jsonl; recorded trainings are skipped. --table fills the tables of
docs/findings/future.md; --check fails if they differ from the records.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from turns import record, recorded

from capnets.evaluate import evaluate, predict
from capnets.metrics import mse
from capnets.models import MODELS, AdditiveModel, Entry, build, parameters
from capnets.models.registry import decoder, encoder
from capnets.nn.cells import GRUCell
from capnets.runs import versions
from capnets.sets import Sets
from capnets.tasks import make, parse_task
from capnets.training.fit import fit
from capnets.training.recipe import recipe

RECORDS = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).parents[1] / "docs" / "findings" / "future.md"
KEY = ("task", "way", "sets", "seed")
SETS, NODES = 10_000, 8


class Difference(AdditiveModel):
    """Write the added value as a minuend and a subtrahend: v_i = |g(z_i) - g(z_(i-1)) + b|.

    b is the bias of the last layer, which the difference would cancel. Training begins with it at
    the mean added value, as for every additive network.
    """

    def __init__(self, *, spec: Any) -> None:
        super().__init__(in_features=spec.in_features, outputs=spec.outputs)
        self.encoder, self.decoder = encoder(spec), decoder(spec)
        self.cell = GRUCell(spec.hidden, spec.hidden)

    def values(self, x: torch.Tensor) -> torch.Tensor:
        """Decode every state and the one before it; the initial state is 0."""
        z = self.cell(self.encoder(x))[0]
        states = torch.cat([torch.zeros_like(z[:, :1]), z], dim=1)
        return (self.decoder(states).diff(dim=1) + self.final.bias).abs()


MODELS["difference"] = Entry("C-GRU, difference", "", lambda spec: Difference(spec=spec))

#: The settings of each way to train; `classes` trains with cross-entropy.
WAYS: dict[str, dict[str, Any]] = {
    "GRU": {"name": "gru"},
    "GRU, classes": {"name": "gru", "classes": True},
    "C-GRU": {"name": "c-gru"},
    "C-GRU, signed": {"name": "c-gru", "activation": "identity"},
    "C-GRU, signed, classes": {"name": "c-gru", "activation": "identity", "classes": True},
    "C-GRU, difference": {"name": "difference"},
    "C-GRU, sorted by worth": {"name": "c-gru", "order": "worth"},
    "C-GRU, learned order": {"name": "c-order"},
    "C-Potential": {"name": "c-potential"},
    "C-DeepSet": {"name": "c-deepset"},
    "DeepSet": {"name": "deepset"},
    "Message Passing": {"name": "message-passing"},
    "Janossy, pairs": {"name": "janossy-pairs"},
    "Set Transformer": {"name": "set-transformer"},
}
#: Tasks and ways of each part, and the measures that its table shows.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "classes": (
        ("UC", "TriC", "US"),
        ("GRU", "GRU, classes", "C-GRU", "C-GRU, signed", "C-GRU, signed, classes"),
        ("accuracy", "mse"),
    ),
    "difference": (
        ("US", "WTri", "US+S"),
        ("C-GRU", "C-GRU, difference", "C-GRU, signed", "GRU", "C-Potential"),
        ("mse", "added_value_error"),
    ),
    "order": (
        ("US", "WTri", "US+S"),
        ("C-GRU", "C-GRU, sorted by worth", "C-GRU, learned order"),
        ("mse", "added_value_error"),
    ),
    "graph": (
        ("graph",),
        ("GRU", "C-GRU", "C-GRU, difference", "C-DeepSet", "C-Potential", "DeepSet",
         "Message Passing", "Janossy, pairs", "Set Transformer"),
        ("mse", "accuracy", "added_value_error"),
    ),
}  # fmt: skip
NAMES = {"mse": "MSE", "accuracy": "accuracy", "added_value_error": "added values"}


class Problem(NamedTuple):
    """Sets with labels, and the exact added values of the test sets."""

    train: Sets
    valid: Sets
    test: Sets
    expected: np.ndarray


def main() -> None:
    """Train what is not there yet, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--sets", type=int, default=SETS)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.table or given.check:
        from beyond import fill

        return fill(PAGE, tables(), check=given.check)
    torch.set_num_threads(1)
    done = {tuple(line[k] for k in KEY) for line in recorded(RECORDS)}
    for seed, part in product(given.seeds, given.parts):
        tasks, ways, _ = PARTS[part]
        for task, way in product(tasks, ways):
            key = (task, way, given.sets, seed)
            if key not in done:
                done.add(key)
                line = dict(zip(KEY, key, strict=True)) | train(*key, epochs=given.epochs)
                record(RECORDS, [line | {"versions": versions()}])
                print(line, flush=True)


def train(task: str, way: str, sets: int, seed: int, *, epochs: int | None) -> dict[str, Any]:
    """Train one network and measure it on the test sets."""
    problem, settings = draw(task, sets), dict(WAYS[way])
    classes = np.unique(problem.train.y) if settings.pop("classes", False) else None
    outputs = 1 if classes is None else len(classes)
    model = build(**settings, in_features=problem.train.in_features, outputs=outputs, seed=seed)
    trained, valid = (as_classes(s, classes) for s in (problem.train, problem.valid))
    began = time.process_time()
    how, loss = recipe("muon", epochs=epochs), "squared" if classes is None else "softmax"
    history = fit(model, trained, valid, recipe=how, seed=seed, loss=loss)
    seconds = time.process_time() - began
    return {
        "parameters": parameters(model),
        "epochs": len(history),
        "seconds": round(seconds, 1),
        **measure(model, problem, classes),
    }


def measure(model: Any, problem: Problem, classes: np.ndarray | None) -> dict[str, float]:
    """Return the error, the share of exact labels, and the error of added values."""
    if classes is None:
        found = evaluate(model, problem.test, expected=problem.expected)
        return {name: round(float(found[name]), 5) for name in NAMES}
    scores = torch.from_numpy(predict(model, problem.test))
    y, chosen = problem.test.y, classes[scores.argmax(1).numpy()]
    means = scores.softmax(1).numpy() @ classes
    return {"mse": round(mse(y, means), 5), "accuracy": round(float((chosen == y).mean()), 5)}


def as_classes(sets: Sets, classes: np.ndarray | None) -> Sets:
    """Replace labels by their numbers among the classes; drop sets of other labels."""
    if classes is None:
        return sets
    known = sets.subset(np.flatnonzero(np.isin(sets.y, classes)))
    numbers = np.searchsorted(classes, known.y).astype(np.float32)
    return Sets(known.instances, known.index, known.offsets, numbers)


@cache
def draw(task: str, sets: int) -> Problem:
    """Draw the sets of a task."""
    few = sets // 5
    if task == "graph":
        parts = [edges(n, seed) for seed, n in enumerate((sets, few, few))]
        return Problem(*(part for part, _ in parts), parts[2][1])
    spec = parse_task(task, embedding="patches", sets=sets, valid_sets=few, test_sets=few)
    made = make(spec)
    return Problem(made.train, made.valid, made.test, made.expected(made.test))


def edges(sets: int, seed: int) -> tuple[Sets, np.ndarray]:
    """Draw sets of 4 to 10 edges between eight nodes, labelled by the rank of their graph.

    The rank is the number of nodes minus the number of connected components: a matroid's, so
    monotone and submodular. An edge adds 1 if it joins two components of those before it.
    """
    every = np.array(list(combinations(range(NODES), 2)))
    ends = np.eye(NODES, dtype=np.float32)
    generator = np.random.default_rng(seed)
    sizes = generator.integers(4, 11, size=sets)
    index = np.concatenate([generator.permutation(len(every))[:n] for n in sizes])
    offsets = np.concatenate([[0], sizes.cumsum()])
    values = np.concatenate([joins(every[index[a:b]]) for a, b in pairwise(offsets)])
    y = np.add.reduceat(values, offsets[:-1]).astype(np.float32)
    return Sets(ends[every[:, 0]] + ends[every[:, 1]], index, offsets, y), values


def joins(chosen: np.ndarray) -> np.ndarray:
    """Return 1 for every edge that joins two components of the edges before it."""
    component = np.arange(NODES)
    found = np.zeros(len(chosen))
    for k, (a, b) in enumerate(chosen):
        found[k] = component[a] != component[b]
        component[component == component[a]] = component[b]
    return found


def tables() -> dict[str, str]:
    """Return one table per part: means over seeds, their number in parentheses."""
    from beyond import markdown

    newest = {tuple(line[k] for k in KEY): line for line in recorded(RECORDS)}
    lines = [line for line in newest.values() if line["sets"] == SETS]
    found = {}
    for part, (tasks, ways, measures) in PARTS.items():
        columns = list(product(tasks, measures))
        head = [NAMES[m] if part == "graph" else f"{t}, {NAMES[m]}" for t, m in columns]
        rows = []
        for way in ways:
            some = [x for x in lines if x["way"] == way]
            cells = [[x[m] for x in some if x["task"] == t and m in x] for t, m in columns]
            rows.append([way, *map(number, cells)])
        found[part] = markdown(["network", *head], rows)
    return found


def number(values: list[float]) -> str:
    """Format a mean over seeds."""
    if not values:
        return "–"
    return f"{mean(values):.3g}" + (f" ({len(values)})" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
