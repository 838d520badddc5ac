"""Fill tables and figures of the findings from records.

    python benchmarks/beyond.py [--check]

Reads results/full/records.jsonl (`capnets reproduce`), benchmarks/networks.jsonl and
benchmarks/averaging.jsonl; writes the figures and the tables between the markers <!-- NAME --> and
<!-- end --> of the page. Nothing is trained, and no number is typed by hand. With --check, nothing
is written, and the command fails if a page differs from the records.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from forms import FORMS

from capnets.files import write_text
from capnets.models import MODELS
from capnets.paper.execute import current
from capnets.paper.names import SYSTEMS
from capnets.paper.published.effectiveness import LARGER_SETS, MAIN_MEAN, VARYING_MEAN
from capnets.paper.published.interpretability import ADDED_VALUE_ERROR
from capnets.paper.results import Record, Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings" / "beyond-the-paper.md"
ORDERS = ROOT / "docs" / "findings" / "orders.md"
TASKS = {
    "UC": "unique-count", "US": "unique-sum", "WTri": "weighted-triangular",
    "US+S": "unique-sum-synergy", "TriC": "triangular-count",
}  # fmt: skip
#: The recipes of this page; the report compares them with the paper's own.
RECIPES = ("muon", "fast")
NETWORKS = ("c-rnn", "c-lstm", "c-gru", "c-deepset", "c-potential")
COUNTERPARTS = ("rnn", "lstm", "gru", "deepset")
AVERAGED = ("c-gru", "c-deepset")
SIZES = (10, 20, 30, 40)
VARYING = (6, 8, 10, 12, 14)
COLORS = {
    "c-gru": "#b45309", "c-deepset": "#1d4ed8", "c-potential": "#047857",
    "gru": "#be185d", "deepset": "#6b7280",
}  # fmt: skip

#: Forms of benchmarks/forms.py without a loop over instances.
CONTEXTS = {name for name in FORMS if not name.startswith(("keeping", "open", "quiet", "far"))}

Records = list[dict[str, Any]]


def main() -> None:
    """Write the page's tables and pictures, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    results = current(Results(ROOT / "results" / "full").read()).values()
    records = [record.to_dict() for record in results]
    trials = read(Path(__file__).with_name("networks.jsonl"))
    tables = {
        "predictions": predictions(records, "shared"),
        "held-out": predictions(records, "held-out"),
        "systems": systems(Results(ROOT / "results" / "small").read().values()),
        "recipes": recipes(records),
        "added values": added_values(records),
        "larger sets": larger_sets(records),
        "varying sizes": varying_sizes(records),
        "cost": cost(records),
        "averaging": averaging(read(Path(__file__).with_name("averaging.jsonl"))),
        "forms": forms(trials),
    }
    fill(PAGE, tables, check=check)
    fill(ORDERS, {"spreads": spreads(records)}, check=check)
    if not check:
        draw_sizes(records)
        draw_learning(records)


def fill(page: Path, tables: dict[str, str], *, check: bool) -> None:
    """Put tables where a page has their marks; or say that they are others."""
    before = text = page.read_text()
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{page} has no place for the table {name!r}")
        text = pattern.sub(lambda m, t=table: f"{m[1]}\n{t}\n\n{m[2]}", text)
    if not check:
        write_text(page, text)
    elif text != before:
        raise SystemExit(f"{page} does not show the records; write it again without --check")


def read(path: Path) -> Records:
    """Return the lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def found(records: Records, model: str, task: str, *sizes: int, **others: Any) -> Records:
    """Return the records of a network on a task of the paper, all seeds; by default sets of 10."""
    plain = {
        "model": model, "task": TASKS[task], "sizes": list(sizes or (10,)), "sets": 100_000,
        "hidden": 32, "layers": 3, "epochs": None, "learning_rate": None,
        "activation": None, "priors": [], **others,
    }  # fmt: skip
    return [
        r
        for r in records
        if not r["failure"] and all(r["choice"].get(k) == v for k, v in plain.items())
    ]


def of_recipe(records: Records, task: str, *sizes: int) -> tuple[str, Records]:
    """Return the first recipe that trained C-DeepSet on such sets, and its records."""
    for recipe in RECIPES:
        some = [record for record in records if record["choice"].get("recipe") == recipe]
        if found(some, "c-deepset", task, *sizes):
            return recipe, some
    raise SystemExit(f"there is no C-DeepSet on {task} {sizes}; run capnets reproduce first")


def number(some: Records, protocol: str, measure: str) -> str:
    """Format the mean over seeds, and the number of seeds if there are several."""
    values = [r["metrics"][protocol][measure] for r in some if measure in r["metrics"][protocol]]
    if not values:
        return "–"
    return f"{mean(values):.3g}" + (f" ({len(values)})" if len(values) > 1 else "")


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Format a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def predictions(records: Records, protocol: str) -> str:
    """Test errors of the capacity networks, and the paper's best."""
    recipe, records = of_recipe(records, "US")
    rows = []
    for model in (*NETWORKS, *COUNTERPARTS):
        rows.append([MODELS[model].label])
        rows[-1] += [number(found(records, model, t), protocol, "mse") for t in TASKS]
    if protocol == "shared":
        best = {t: min(row[t] for row in MAIN_MEAN.values()) for t in TASKS}
        rows.append(["the paper's best", *(f"{best[t]:g}" for t in TASKS)])
    return markdown([f"test MSE, {recipe}", *TASKS], rows)


def systems(small: Iterable[Record]) -> str:
    """Test errors of networks of other authors beside three of ours, on a tenth of the sets."""
    records = [r.to_dict() for r in small]
    rows = []
    for model in ("deepset", "gru", "c-gru", *SYSTEMS):
        some = [found(records, model, t, sets=10_000, recipe="muon") for t in TASKS]
        if any(some):
            rows.append([MODELS[model].label, *(number(s, "shared", "mse") for s in some)])
    return markdown(["test MSE, muon, 10,000 sets", *TASKS], rows)


def recipes(records: Records) -> str:
    """Test errors by AdamW and by Muon, of networks that were trained by both."""
    by = {r: [x for x in records if x["choice"].get("recipe") == r] for r in RECIPES}
    rows = []
    for model in (*NETWORKS, *COUNTERPARTS):
        cells = []
        for task in TASKS:
            muon, fast = (number(found(by[r], model, task), "shared", "mse") for r in RECIPES)
            cells.append("–" if "–" in (muon, fast) else f"{fast} → {muon}")
        if set(cells) != {"–"}:
            rows.append([MODELS[model].label, *cells])
    return markdown(["test MSE, fast → muon", *TASKS], rows)


def added_values(records: Records) -> str:
    """Tabulate the errors of added values, and of the prefix differences of other networks."""
    recipe, records = of_recipe(records, "US")
    tasks = [t for t in TASKS if t != "UC"]
    rows = []
    for model in (*NETWORKS, *COUNTERPARTS):
        rows.append([MODELS[model].label])
        rows[-1] += [number(found(records, model, t), "shared", "added_value_error") for t in tasks]
    best = {t: min(row[t] for row in ADDED_VALUE_ERROR.values()) for t in tasks}
    rows.append(["the paper's best", *(f"{best[t]:g}" for t in tasks)])
    return markdown([f"error of added values, {recipe}", *tasks], rows)


def spreads(records: Records) -> str:
    """Format the spreads over orders of capacity networks and their counterparts."""
    best = [record for record in records if record["choice"].get("recipe") == RECIPES[0]]
    pairs = [("c-rnn", "rnn"), ("c-lstm", "lstm"), ("c-gru", "gru"), ("c-deepset", None)]
    rows = []
    for capacity, other in pairs:
        row = [MODELS[capacity].label]
        for task in ("US", "WTri"):
            for model in (capacity, other):
                some = found(best, model, task) if model else []
                row.append(number(some, "shared", "order_spread") if some else "–")
        rows.append(row)
    head = [f"spread, {RECIPES[0]}", "US", "its counterpart", "WTri", "its counterpart"]
    return markdown(head, rows)


def larger_sets(records: Records) -> str:
    """WTri by the number of instances."""
    recipe, records = of_recipe(records, "WTri", SIZES[-1])
    rows = []
    for model in (*NETWORKS, *COUNTERPARTS):
        some = [found(records, model, "WTri", n) for n in SIZES]
        if any(some[1:]):
            rows.append([MODELS[model].label, *(number(s, "shared", "mse") for s in some)])
    best = [min(row[n] for row in LARGER_SETS.values()) for n in SIZES]
    rows.append(["the paper's best", *(f"{b:g}" for b in best)])
    return markdown([f"WTri, test MSE, {recipe}", *(f"{n} instances" for n in SIZES)], rows)


def varying_sizes(records: Records) -> str:
    """Format the table of sets of 6 to 14 instances."""
    recipe, records = of_recipe(records, "US", *VARYING)
    tasks = [t for t in TASKS if t != "UC"]
    rows = []
    for model in (*NETWORKS, *COUNTERPARTS[:3]):
        some = [found(records, model, t, *VARYING) for t in tasks]
        rows.append([MODELS[model].label, *(number(s, "shared", "mse") for s in some)])
    best = [min(row[t] for row in VARYING_MEAN.values()) for t in tasks]
    rows.append(["the paper's best", *(f"{b:g}" for b in best)])
    return markdown([f"sets of 6 to 14, test MSE, {recipe}", *tasks], rows)


def averaging(lines: Records) -> str:
    """One network and several, in one order and in several, on test sets of seen images."""
    columns = [*((t, 10) for t in TASKS), ("WTri", 40)]
    # The first recipe by which both networks were averaged.
    both = {r: {x["model"] for x in lines if x["recipe"] == r} >= set(AVERAGED) for r in RECIPES}
    recipe = next(r for r in RECIPES if both[r])
    lines = [x for x in lines if x["recipe"] == recipe]
    rows = []
    for model in AVERAGED:
        there = {(x["task"], x["size"]): x for x in lines if x["model"] == model}
        for who in ("alone", "together"):
            for orders in (1, 8):
                name = MODELS[model].label if who == "alone" else f"{MODELS[model].label}, averaged"
                cells = []
                for column in columns:
                    line = there.get(column, {})
                    measured = line.get(f"shared, {who}, {orders}")
                    several = f" ({n})" if measured and (n := len(line["seeds"])) > 1 else ""
                    cells.append(f"{measured['mse']:.3g}{several}" if measured else "–")
                rows.append([name, str(orders), *cells])
    half = [min(row[t] for row in MAIN_MEAN.values()) / 2 for t in TASKS]
    half.append(min(row[40] for row in LARGER_SETS.values()) / 2)
    rows.append(["half of the paper's best", "", *(f"{h:.3g}" for h in half)])
    names = [t if size == 10 else f"{t}, {size} instances" for t, size in columns]
    return markdown([f"test MSE, {recipe}", "orders", *names], rows)


def cost(records: Records) -> str:
    """Processor seconds of a whole cell, by network."""
    _, records = of_recipe(records, "US")
    rows = []
    for model in (*NETWORKS, "gru", "deepset"):
        cells = [[r["cost"]["cpu_seconds"] for r in found(records, model, t)] for t in TASKS]
        seconds = [s for cell in cells for s in cell if s]
        if seconds:
            counted = next(r for t in TASKS for r in found(records, model, t))
            size = f"{counted['metrics']['parameters']:,}"
            rows.append([MODELS[model].label, size, f"{mean(seconds):.0f}", f"{min(seconds):.0f}"])
    return markdown(["network", "parameters", "seconds, mean", "seconds, least"], rows)


def forms(trials: Records) -> str:
    """Forms of a context, by their error on validation sets after ten epochs."""
    groups: dict[str, dict[str, Records]] = {}
    for t in trials:
        usual = (t["epochs"], t["rate"], t["start"], t["size"]) == (10, 5e-3, "wide", 10)
        if usual and t["model"] in CONTEXTS:
            groups.setdefault(t["model"], {}).setdefault(t["task"], []).append(t)
    rows = []
    for form, tasks in groups.items():
        cells = [mean(t["valid"] for t in tasks[k]) if k in tasks else None for k in ("WTri", "US")]
        values = mean(t["values"] for t in tasks["WTri"]) if "WTri" in tasks else None
        some = next(iter(tasks.values()))[0]
        seeds = [len(tasks.get(k, ())) for k in ("WTri", "US")]
        rows.append(((-seeds[0], cells[0] or 1e9), [
            form, f"{some['parameters']:,}", ", ".join(map(str, seeds)),
            *("–" if c is None else f"{c:.3f}" for c in (*cells, values)),
        ]))  # fmt: skip
    head = ["form", "parameters", "seeds (WTri, US)", "WTri, valid MSE", "US, valid MSE"]
    head.append("WTri, added values")
    return markdown(head, [row for _, row in sorted(rows)])


def draw_sizes(records: Records) -> None:
    """Error by the size of sets, the paper's best in grey."""
    _, records = of_recipe(records, "WTri", SIZES[-1])
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.plot(SIZES, [min(r[n] for r in LARGER_SETS.values()) for n in SIZES], "o--",
              color="#9ca3af", label="the paper's best")  # fmt: skip
    for model in COLORS:
        points = [(n, found(records, model, "WTri", n)) for n in SIZES]
        drawn = [(n, mean(r["metrics"]["shared"]["mse"] for r in rs)) for n, rs in points if rs]
        if len(drawn) < 2:
            continue
        axes.plot(*zip(*drawn, strict=True), "o-", color=COLORS[model], label=MODELS[model].label)
    axes.set(xlabel="instances in a set", ylabel="test MSE, WTri, shared", yscale="log")
    axes.set_xticks(SIZES)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "beyond-sizes.png", dpi=150)


def draw_learning(records: Records) -> None:
    """Draw the validation error by epoch on the three digit tasks, for the first seed."""
    _, records = of_recipe(records, "US")
    tasks = ("US", "WTri", "US+S")
    figure, places = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axes, task in zip(places, tasks, strict=True):
        for model in ("deepset", "gru", "c-gru", "c-deepset", "c-potential"):
            some = found(records, model, task)
            if some:
                first = min(some, key=lambda r: r["choice"]["seed"])
                curve = first["metrics"]["curve"]
                axes.plot(range(1, len(curve) + 1), curve, color=COLORS[model],
                          label=MODELS[model].label)  # fmt: skip
        axes.set(title=task, xlabel="epoch", yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
    places[0].set_ylabel("MSE on validation sets, seed 0")
    places[-1].legend(frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "beyond-learning.png", dpi=150)


if __name__ == "__main__":
    main()
