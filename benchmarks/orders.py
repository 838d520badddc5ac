"""Compare remedies for order dependence: spread, error and cost.

    python benchmarks/orders.py --study penalty --tasks US WTri
    python benchmarks/orders.py --study policies --tasks US WTri --seeds 0 1 2
    python benchmarks/orders.py --table

A *way* is a network and a treatment of order: none (random orders in training), a consistency
penalty, a fixed total order, or a network that does not depend on the order.
Sets are the paper's, with label-free image features. Choices are made on validation sets; results
under `test` (with --test) are for the page, after all choices are made. One line per training is
appended to benchmarks/orders.jsonl; recorded trainings are skipped. Times are processor seconds
with one thread. The whole study takes about an hour and is not part of `make bench`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from turns import record, recorded

from capnets.evaluate import evaluate, order_sensitivity
from capnets.models import SetModel, build, parameters
from capnets.runs import versions
from capnets.tasks import PROTOCOLS, TaskSets, make, parse_task
from capnets.training.fit import fit
from capnets.training.priors import Consistent, Prior
from capnets.training.recipe import recipe

RECORDS = Path(__file__).with_suffix(".jsonl")
KEY = ("way", "task", "size", "sets", "epochs", "seed", "test")


@dataclass(frozen=True)
class Way:
    """A network and what is done about order."""

    model: str
    penalty: float = 0.0
    order: str | int = "given"
    activation: str = "abs"

    def build(self, seed: int) -> SetModel:
        """Build the network."""
        return build(self.model, seed=seed, order=self.order, activation=self.activation)

    @property
    def priors(self) -> list[Prior]:
        """Return the priors of this setting."""
        return [Consistent(weight=self.penalty)] if self.penalty else []


WAYS = {
    "c-gru": Way("c-gru"),
    "c-deepset": Way("c-deepset"),
    "deepset": Way("deepset"),
    "c-potential": Way("c-potential"),
    "c-potential, signed": Way("c-potential", activation="identity"),
    "c-gru, consistent 0.1": Way("c-gru", penalty=0.1),
    "c-gru, consistent 1": Way("c-gru", penalty=1.0),
    "c-gru, consistent 10": Way("c-gru", penalty=10.0),
    "c-deepset, consistent 0.1": Way("c-deepset", penalty=0.1),
    "c-deepset, consistent 1": Way("c-deepset", penalty=1.0),
    "c-deepset, consistent 10": Way("c-deepset", penalty=10.0),
    "c-gru, by first feature": Way("c-gru", order=0),
    "c-gru, by worth": Way("c-gru", order="worth"),
    "c-deepset, by first feature": Way("c-deepset", order=0),
    "c-deepset, by worth": Way("c-deepset", order="worth"),
}
STUDIES = {
    "penalty": [w for w in WAYS if "consistent" in w or w in ("c-gru", "c-deepset")],
    "construction": ["c-deepset", "deepset", "c-potential", "c-potential, signed"],
    "policies": [w for w in WAYS if "by" in w or w in ("c-gru", "c-deepset")],
    "all": list(WAYS),
}


def main() -> None:
    """Train what was asked for and is not there yet."""
    given = arguments()
    done = {tuple(line[k] for k in KEY) for line in recorded(RECORDS)}
    if given.table:
        return table(recorded(RECORDS))
    torch.set_num_threads(1)
    made: dict[str, TaskSets] = {}
    for seed, task, way in product(given.seeds, given.tasks, given.ways or STUDIES[given.study]):
        choice = {
            "way": way, "task": task, "size": given.size, "sets": given.sets,
            "epochs": given.epochs, "seed": seed, "test": given.test,
        }  # fmt: skip
        if tuple(choice[k] for k in KEY) in done:
            continue
        if task not in made:
            spec = parse_task(
                task, sets=given.sets, sizes=(given.size,), valid_sets=given.valid_sets,
                embedding="patches",
            )  # fmt: skip
            made[task] = make(spec)
        line = choice | train(choice, made[task]) | {"versions": versions()}
        record(RECORDS, [line])
        print({k: v for k, v in line.items() if k != "versions"}, flush=True)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=STUDIES, default="all")
    parser.add_argument("--ways", nargs="*", choices=WAYS, help="instead of a study")
    parser.add_argument("--tasks", nargs="*", default=["US", "WTri"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--sets", type=int, default=30_000)
    parser.add_argument("--valid-sets", type=int, default=5_000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--test", action="store_true", help="measure on test sets too")
    parser.add_argument("--table", action="store_true", help="print what is there")
    return parser.parse_args()


def train(choice: dict[str, Any], task: TaskSets) -> dict[str, Any]:
    """One training, judged on validation sets (and on test sets, if asked for)."""
    way, seed = WAYS[choice["way"]], choice["seed"]
    model = way.build(seed)
    how = recipe("large", epochs=choice["epochs"])
    begun = time.process_time()
    fit(model, task.train, task.valid, recipe=how, seed=seed, priors=way.priors)
    seconds = time.process_time() - begun
    parts = {"valid": task.valid}
    if choice["test"]:
        parts |= {protocol: task.test_sets(protocol) for protocol in PROTOCOLS}
    found: dict[str, Any] = {"parameters": parameters(model), "seconds": round(seconds, 1)}
    for name, sets in parts.items():
        quality = evaluate(model, sets, expected=task.expected(sets))
        orders = order_sensitivity(model, sets)
        found[name] = {
            "mse": round(quality["mse"], 5),
            "values": round(quality["added_value_error"], 5),
            "averaged": round(orders["averaged"], 5),
            "spread": float(f"{orders['spread']:.3g}"),
        }
    return found


def table(records: list[dict[str, Any]]) -> None:
    """Means over seeds as Markdown, in the order of the ways."""
    print(
        "| task | sets | epochs | way | seeds | sets judged | spread | MSE | MSE, mean of 5 orders "
        "| error of values | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in records:
        groups.setdefault((line["task"], line["sets"], line["epochs"], line["way"]), []).append(
            line
        )
    for (task, sets, epochs, way), found in sorted(
        groups.items(), key=lambda item: (item[0][:3], list(WAYS).index(item[0][3]))
    ):
        for part in ("valid", *PROTOCOLS):
            judged = [r for r in found if part in r]
            if not judged:
                continue
            spread, mse, averaged, values = (
                mean(r[part][k] for r in judged) for k in ("spread", "mse", "averaged", "values")
            )
            seconds = mean(r["seconds"] for r in judged)
            print(
                f"| {task} | {sets} | {epochs} | {way} | {len(judged)} | {part} | {spread:.3g} "
                f"| {mse:.3f} | {averaged:.3f} | {values:.3f} | {seconds:.0f} |"
            )


if __name__ == "__main__":
    main()
