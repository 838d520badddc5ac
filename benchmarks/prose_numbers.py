"""Compute the numbers that sentences of the documentation state, from records."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from beyond import NETWORKS, ROOT, TASKS, found, read
from future import KEY
from future import RECORDS as FUTURE
from orders import RECORDS as ORDERS
from orders_page import SETTING
from turns import recorded

from capnets.paper.execute import current
from capnets.paper.published.effectiveness import LARGER_SETS, MAIN_MEAN
from capnets.paper.results import Results

HERE = Path(__file__).parent
RECURRENT = ("c-rnn", "c-lstm", "c-gru")
#: The classifier with the lowest error.
BEST_READER = "convolutions, warped, 8 readings"
GATED = ("c-lstm", "c-gru", "lstm", "gru")
Line = dict[str, Any]


def two(*values: float) -> list[str]:
    """Format with two decimals."""
    return [f"{value:.2f}" for value in values]


def one(*values: float) -> list[str]:
    """Format with one decimal."""
    return [f"{value:.1f}" for value in values]


def percent(*shares: float) -> list[str]:
    """Format as whole percentages, without a sign."""
    return [f"{abs(100 * share):.0f}" for share in shares]


# The reproduction


@cache
def full(recipe: str = "muon") -> list[Line]:
    """Return the records of the reproduction by one recipe."""
    records = current(Results(ROOT / "results" / "full").read()).values()
    lines = [record.to_dict() for record in records]
    return [line for line in lines if line["choice"].get("recipe") == recipe]


def measured(
    model: str,
    task: str,
    *sizes: int,
    measure: str = "mse",
    protocol: str = "shared",
    recipe: str = "muon",
) -> float:
    """Return the mean over seeds."""
    some = found(full(recipe), model, task, *sizes)
    return mean(line["metrics"][protocol][measure] for line in some)


def value_errors(model: str) -> list[float]:
    """Return the errors of added values on all tasks."""
    return [measured(model, task, measure="added_value_error") for task in TASKS]


def value_range() -> list[str]:
    """Return the lowest and highest error of C-DeepSet's values."""
    errors = value_errors("c-deepset")
    return two(min(errors), max(errors))


def values_on_us() -> list[str]:
    """Return the errors of values on US: C-DeepSet, differences of a GRU, C-GRU."""
    models = ("c-deepset", "gru", "c-gru")
    return two(*(measured(m, "US", measure="added_value_error") for m in models))


def recurrent_values() -> list[str]:
    """Return the highest error of values of a recurrent capacity network."""
    return one(max(max(value_errors(model)) for model in RECURRENT))


def closer_values() -> list[str]:
    """Count the pairs in which values of a capacity network are closer; return all pairs, too."""
    pairs = [(f"c-{cell}", cell, t) for cell in ("rnn", "lstm", "gru") for t in TASKS if t != "UC"]
    errors = (
        [measured(m, task, measure="added_value_error") for m in (ours, other)]
        for ours, other, task in pairs
    )
    return [str(sum(ours < other for ours, other in errors)), str(len(pairs))]


def shares_of_the_paper() -> list[str]:
    """Return errors over the paper's lowest: at most, C-GRU on US, C-LSTM on WTri."""
    lowest = {task: min(row[task] for row in MAIN_MEAN.values()) for task in TASKS}
    best = {task: min(measured(model, task) for model in NETWORKS) for task in TASKS}
    most = max(best[task] / lowest[task] for task in TASKS)
    some = (("c-gru", "US"), ("c-lstm", "WTri"))
    return percent(most, *(measured(m, t) / lowest[t] for m, t in some))


def forty() -> list[str]:
    """Return C-DeepSet's error over the paper's lowest, sets of 40."""
    return percent(measured("c-deepset", "WTri", 40) / min(r[40] for r in LARGER_SETS.values()))


def ahead(recipe: str, *tasks: str) -> int:
    """Count the pairs in which a capacity network has a lower error than its counterpart."""
    return sum(
        measured(model, task, recipe=recipe) < measured(model[2:], task, recipe=recipe)
        for model in RECURRENT
        for task in tasks or TASKS
    )


def pairs() -> list[str]:
    """Count pairs: all, on MNIST, on Fashion-MNIST, with AdamW, on 100,000 other test sets."""
    lines = [x for x in read(HERE / "pairs.jsonl") if (x["recipe"], x["sets"]) == ("muon", 100_000)]

    def error(model: str, task: str) -> float:
        return mean(x["shared"] for x in lines if (x["model"], x["task"]) == (model, task))

    larger = sum(
        error(model, task) < error(model[2:], task) for model in RECURRENT for task in TASKS
    )
    counts = ahead("muon", "US", "WTri", "US+S"), ahead("muon", "UC", "TriC"), ahead("fast"), larger
    return [str(ahead("muon")), *map(str, counts)]


def unseen_by_muon() -> list[str]:
    """Return the best and worst change by Muon on unseen images, gated networks."""
    changes = [
        measured(model, task, protocol="held-out")
        / measured(model, task, protocol="held-out", recipe="fast")
        - 1
        for model in GATED
        for task in TASKS
    ]
    return percent(min(changes), max(changes))


def spreads() -> list[str]:
    """Return the lowest and highest spread of a capacity network over orders."""
    models = (*RECURRENT, "c-deepset")
    some = [measured(m, t, measure="order_spread") for m in models for t in ("US", "WTri")]
    return two(min(some), max(some))


# Short trainings


def order(way: str, task: str, key: str) -> float:
    """Return a mean over seeds of the study of orders, on validation sets."""
    alike = [r for r in recorded(ORDERS) if all(r[k] == v for k, v in SETTING.items())]
    newest_of = {(r["way"], r["task"], r["seed"]): r for r in alike}
    some = [r for r in newest_of.values() if (r["way"], r["task"]) == (way, task)]
    return mean(r["seconds"] if key == "seconds" else r["valid"][key] for r in some)


def against(way: str, key: str, *tasks: str) -> list[float]:
    """Return a figure of a way over that of the plain network."""
    plain = way.split(",")[0]
    return [order(way, task, key) / order(plain, task, key) for task in tasks or ("US", "WTri")]


def slower_by_penalty() -> list[str]:
    """Return how many times as long training with a penalty takes, at least and at most."""
    ways = ("c-gru, consistent 1", "c-deepset, consistent 1", "c-deepset, consistent 10")
    times = [time for way in ways for time in against(way, "seconds")]
    return one(min(times), max(times))


def gain_by_penalty() -> list[str]:
    """Return the decrease of the error on US and WTri."""
    return percent(*(1 - ratio for ratio in against("c-deepset, consistent 10", "mse")))


def sorted_on_us() -> list[str]:
    """Return errors and errors of values by a total order, over random orders."""
    ways = ("c-deepset, by first feature", "c-deepset, by worth")
    errors = [against(way, "mse", "US")[0] - 1 for way in ways]
    return [*percent(*errors), *one(*(against(way, "values", "US")[0] for way in ways))]


@cache
def future() -> dict[tuple[str, str], Line]:
    """Return the records of future work by task and way, first seed."""
    lines = {tuple(x[k] for k in KEY): x for x in recorded(FUTURE)}.values()
    return {(x["task"], x["way"]): x for x in lines if (x["sets"], x["seed"]) == (10_000, 0)}


def classes_lower() -> list[str]:
    """Count the pairs in which classes lower the accuracy, and all pairs."""
    lower = [
        line["accuracy"] < future()[task, way.removesuffix(", classes")]["accuracy"]
        for (task, way), line in future().items()
        if way.endswith(", classes")
    ]
    return [str(sum(lower)), str(len(lower))]


def values_on_graphs() -> list[str]:
    """Return the range of the errors of values on graphs: capacity networks, others."""
    errors = {way: x["added_value_error"] for (task, way), x in future().items() if task == "graph"}
    ours = [error for way, error in errors.items() if way.startswith("C-")]
    others = [error for way, error in errors.items() if not way.startswith("C-")]
    return two(min(ours), max(ours), min(others), max(others))


def time_of_learned_order() -> list[str]:
    """Return the training time of a learned order over that of C-GRU."""
    seconds = (future()["US", way]["seconds"] for way in ("C-GRU, learned order", "C-GRU"))
    learned, plain = seconds
    return one(learned / plain)


# Unseen images


def unseen(kind: str, task: str, **others: Any) -> Line:
    """Return the one record of the study of unseen images."""
    lines = [x for x in recorded(HERE / "heldout" / "records.jsonl") if x["kind"] == kind]
    asked = {"task": task, **others}
    [line] = [x for x in lines if all(x.get(k) == v for k, v in asked.items())]
    return line


def limit(task: str, reader: str = BEST_READER) -> float:
    """Return the error of a classifier trained on image labels, by mean labels."""
    return float(unseen("limit", task, reader=reader)["mean"])


def end_to_end() -> list[str]:
    """Return the errors on US, and how far those on WTri and US+S exceed the limit."""
    us, wtri, synergy = (unseen("network", t, way="warped")["both"] for t in ("US", "WTri", "US+S"))
    above = percent(wtri / limit("WTri") - 1, synergy / limit("US+S") - 1)
    return [*two(us, limit("US")), *above]


def unseen_row(task: str, way: str, judged: str, reader: str) -> list[str]:
    """Return a row of the table of networks."""
    line = unseen("network", task, way=way)
    errors = two(line["given"], line[judged], limit(task, reader))
    return [*errors, f"{line['added_value_error']:.3f}", f"{line['seconds']:.0f}"]


def reader_row(reader: str) -> list[str]:
    """Return a row of the table of classifiers."""
    lines = [unseen("limit", task, reader=reader) for task in ("US", "WTri", "US+S")]
    return two(100 * lines[0]["confused"], *(x[key] for x in lines for key in ("told", "mean")))


def values_on_new_images() -> list[str]:
    """Return the lowest and highest error of values on images that were not trained on."""
    lines = recorded(HERE / "heldout" / "records.jsonl")
    errors = [x["added_value_error"] for x in lines if "added_value_error" in x]
    return two(min(errors), max(errors))


def cost_of_one_percent() -> list[str]:
    """Return the error per percent of confused digits."""
    lines = [unseen("noise", task, share=0.01) for task in ("US", "WTri", "US+S")]
    return one(*(x["told"] / (100 * x["confused"]) for x in lines))


def patches_above_limit() -> list[str]:
    """Return how far C-DeepSet on patches is above their limit, US and WTri."""
    errors = {t: unseen("network", t, way="patches")["orders"] for t in ("US", "WTri")}
    return percent(*(error / limit(task, "patches") - 1 for task, error in errors.items()))


def end_to_end_cost() -> list[str]:
    """Return times and errors of values end to end over those on patches, US and WTri."""
    both = [[unseen("network", t, way=w) for w in ("warped", "patches")] for t in ("US", "WTri")]
    times = [f"{a['seconds'] / b['seconds']:.0f}" for a, b in both]
    return times + one(*(a["added_value_error"] / b["added_value_error"] for a, b in both))
