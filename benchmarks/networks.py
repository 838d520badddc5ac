"""Compare networks, learning rates and initial weights on the paper's tasks (validation sets).

    python benchmarks/networks.py --models c-rnn rnn --rates 5e-3 2e-3 1e-3 --tasks US WTri
    python benchmarks/networks.py --table

A model is a name of `capnets models` or of benchmarks/forms.py. Test sets are not used. One line
per training is appended to benchmarks/networks.jsonl; recorded trainings are skipped. Times are
processor seconds with one thread.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from forms import FORMS, build_form
from turns import record, recorded

from capnets.evaluate import evaluate
from capnets.models import build, parameters
from capnets.runs import versions
from capnets.tasks import make, parse_task
from capnets.training.fit import Diverged, fit
from capnets.training.recipe import recipe

RECORDS = Path(__file__).with_suffix(".jsonl")
KEY = (
    "model", "task", "size", "sets", "epochs", "rate", "start", "batch", "clip", "rehearse",
    "optimizer", "seed",
)  # fmt: skip


def main() -> None:
    """Train what was asked for and is not there yet."""
    given = arguments()
    done = {tuple(line.get(k) for k in KEY): line for line in recorded(RECORDS)}
    if given.table:
        return table(list(done.values()))
    torch.set_num_threads(1)
    asked = product(given.tasks, given.seeds, given.models, given.rates, given.starts)
    for task, seed, model, rate, start in asked:
        choice = {
            "model": model, "task": task, "size": given.size, "sets": given.sets,
            "epochs": given.epochs, "rate": rate, "start": start, "batch": given.batch,
            "clip": given.clip, "rehearse": given.rehearse, "optimizer": given.optimizer,
            "seed": seed,
        }  # fmt: skip
        if tuple(choice[k] for k in KEY) not in done:
            line = choice | train(choice) | {"versions": versions()}
            record(RECORDS, [line])
            print({k: v for k, v in line.items() if k not in ("versions", "curve")}, flush=True)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(FORMS))
    parser.add_argument("--tasks", nargs="*", default=["US", "WTri"])
    parser.add_argument("--rates", nargs="*", type=float, default=[5e-3])
    parser.add_argument("--starts", nargs="*", default=["wide"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--rehearse", type=float, help="see `capnets.training.replay`")
    parser.add_argument("--optimizer", choices=["muon"], help="instead of AdamW")
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--sets", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--table", action="store_true", help="print what is there")
    return parser.parse_args()


def train(choice: dict[str, Any]) -> dict[str, Any]:
    """One training, judged on validation sets."""
    task = make(
        parse_task(
            choice["task"], sets=choice["sets"], sizes=(choice["size"],), embedding="patches"
        )
    )
    name, seed = choice["model"], choice["seed"]
    model = build_form(name, seed=seed) if name in FORMS else build(name, seed=seed)
    how = recipe(
        "large", epochs=choice["epochs"], learning_rate=choice["rate"], start=choice["start"],
        batch_size=choice["batch"], clip=choice["clip"], replay=choice["rehearse"],
        optimizer=choice["optimizer"] or "adamw",
    )  # fmt: skip
    begun = time.process_time()
    try:
        history = fit(model, task.train, task.valid, recipe=how, seed=seed)
    except Diverged:
        return {"valid": float("inf"), "seconds": time.process_time() - begun}
    seconds = time.process_time() - begun
    found = evaluate(model, task.valid, expected=task.expected(task.valid))
    return {
        "parameters": parameters(model),
        "valid": round(found["mse"], 5),
        "values": round(found.get("added_value_error", float("nan")), 5),
        "curve": [float(f"{line['valid']:.4g}") for line in history],
        "seconds": round(seconds, 1),
    }


def table(records: list[dict[str, Any]]) -> None:
    """Means over seeds as Markdown, best first within a setting."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in records:
        groups.setdefault(tuple(line.get(k) for k in KEY[:-1]), []).append(line)
    head = [
        "task", "size", "epochs", "model", "rate", "start", "clip", "rehearse", "optimizer",
        "seeds", "valid MSE", "added values", "seconds",
    ]  # fmt: skip
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for key, found in sorted(
        groups.items(),
        key=lambda item: (item[0][1:5], mean(r["valid"] for r in item[1])),
    ):
        model, task, size, _, epochs, rate, start, _, clip, rehearse, optimizer = key
        means = [mean(r.get(k, float("nan")) for r in found) for k in ("valid", "values")]
        seconds = mean(r["seconds"] for r in found)
        row = [task, size, epochs, model, f"{rate:g}", start, f"{clip:g}", rehearse or "–"]
        row += [optimizer or "adamw", len(found), *(f"{m:.3f}" for m in means), f"{seconds:.0f}"]
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
