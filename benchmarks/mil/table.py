"""Draw the table of benchmarks/mil from its lines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

#: Figures of others: plain models as the data's notes give them, and Ilse et al. (2018).
PUBLISHED = {
    "musk1": "attention MIL (Ilse et al. 2018) accuracy .892",
    "musk2": "attention MIL (Ilse et al. 2018) accuracy .858",
    "elephant": "attention MIL (Ilse et al. 2018) accuracy .868",
    "thrombin": "ridge R² .434, random forest R² .682",
    "ted": "ridge MAE .1638, the mean MAE .1942",
    "womens-clothing": "ridge on other, static sentence vectors, R² .351",
}
HEAD = """\
# Real sets

Made by `python benchmarks/mil/run.py` (it resumes where it stopped; `--table` only draws this page)
from the lines of `folds.jsonl`, one per fold. Folds consist of whole sets and are the same for all
methods. Networks are those of `SetClassifier` and `SetRegressor` with their defaults, which were
chosen by cross-validation inside the training sets of the first fold of musk1, elephant,
mutagenesis and thrombin (`choose.py`, EXPERIMENTS.md); nothing is set per data set. Nothing is
chosen on test folds. The networks that the automatic choice compares were developed on other splits
of musk1 and mutagenesis (five folds, seed 99), whose sets are also sets of these folds.
`c-gru:mean:learned` is C-GRU with the aggregation `mean` and a learned baseline.
± is the standard deviation over repeats. Classes: accuracy, area under the ROC curve (mean over
folds) and log loss; amounts: R² and MAE, over all test sets of a repeat. `birds`
has 13 labels (species); the figures are means over them.

Methods of others (`peers.py`): "forest" and "boosting" on mean, maximum, minimum and deviation of
the features, boosting with settings from cross-validation inside the training fold; "abmil" and
"transformer-mil" by torchmil, three networks averaged. "baseline": logistic regression on mean and
maximum; for thrombin a random forest, for documents ridge regression on means. "ted" and
"ted-sentences" are the same comments (first half to train, second half to test), as bags of words
and as vectors of a language model; Women's clothing: 4,000 reviews to train, 2,000 others to test.
"""


#: Methods that the automatic choice is compared with.
RIVALS = ("gru", "set-transformer", "attention", "deepset", "abmil", "forest", "boosting")
#: The ten data sets; "ted" has the same comments as bags of words.
TEN = (
    "mutagenesis", "protein", "web1", "musk1", "musk2", "elephant", "birds", "thrombin",
    "ted-sentences", "womens-clothing",
)  # fmt: skip

#: Data sets with amounts as labels, and numbers of folds other than ten.
AMOUNTS = ("thrombin", "ted-sentences", "womens-clothing")
FOLDS = {"birds": 5, "thrombin": 5, "ted-sentences": 1, "womens-clothing": 1}


def write_table(
    lines: dict[Any, dict[str, Any]], path: Path, models: tuple[str, ...], protocols: dict[str, Any]
) -> None:
    """Write the page."""
    parts = [HEAD, *_summary(lines)]
    for name, protocol in protocols.items():
        rows = []
        for model in ("baseline", *models):
            mine = [x for x in lines.values() if x["data"] == name and x["model"] == model]
            if mine:
                rows.append(_row(model, _alike(mine), protocol))
        if rows:
            named = ("accuracy", "AUC", "log loss") if protocol.classes else ("R²", "MAE")
            splits = f"{protocol.folds}-fold" if protocol.folds > 1 else "one split"
            parts.append(f"\n## {name} ({splits}, {protocol.repeats} repeats)\n")
            parts.append(f"| method | {' | '.join(named)} | repeats done | CPU s per fold |")
            parts.append("|---" * (len(named) + 3) + "|")
            parts += rows
            if name in PUBLISHED:
                parts.append(f"\nFor comparison: {PUBLISHED[name]}.")
    path.write_text("\n".join(parts) + "\n")


def _summary(lines: dict[Any, dict[str, Any]]) -> list[str]:
    """Return the section on the automatic choice."""
    return [
        "\n## The automatic choice and the best other method\n",
        "AUC for classes, R² for amounts, on all repeats that the automatic choice and the other\n"
        "methods have. The standard error is that of the difference: over the folds of a repeat\n"
        "for AUC (mean over repeats, which test the same sets), over sets for R². Time: CPU\n"
        "seconds of a fold over those of one `gru` with the same preset.\n"
        "Halves: test sets cut to their first half. Trees: members that are `c-trees`.\n",
        *summary(list(lines.values())),
    ]


def summary(lines: list[dict[str, Any]]) -> list[str]:
    """Compare the automatic choice with the best other method, on the folds that both have."""
    rows = [
        "| data | folds | auto | best other | difference | standard error | others done "
        "| time, in GRUs | R² on halves | share of trees |",
        "|---" * 10 + "|",
    ]
    return [*rows, *(x.row for x in compared(lines))]


@dataclass(frozen=True)
class Comparison:
    """The automatic choice beside the best other method on a data set."""

    name: str
    difference: float
    error: float
    row: str


def compared(lines: list[dict[str, Any]]) -> list[Comparison]:
    """Compare the automatic choice with the best other method on every data set."""
    found = {name: shared(lines, name) for name in TEN}
    return [_compared(name, own.pop("auto"), own) for name, own in found.items() if len(own) > 1]


@dataclass(frozen=True)
class Duel:
    """The automatic choice beside one other method on a data set."""

    name: str
    auto: float
    other: float
    error: float

    @property
    def difference(self) -> float:
        """The lead of the automatic choice."""
        return self.auto - self.other


def duels(lines: list[dict[str, Any]], rival: str) -> list[Duel]:
    """Compare the automatic choice with one method, on the folds that all methods share."""
    duels = []
    for name in TEN:
        found = shared(lines, name)
        if rival not in found:
            continue
        classes, pair = name not in AMOUNTS, (found["auto"], found[rival])
        auto, other = (_measure(folds, classes)[int(classes)] for folds in pair)
        duels.append(Duel(name, auto, other, _standard_error(*pair, classes=classes)))
    return duels


def against(lines: list[dict[str, Any]], rival: str) -> list[str]:
    """Return a table of the automatic choice beside one method."""
    rows = ["| data | auto | " + rival + " | difference | standard error |", "|---" * 5 + "|"]
    for x in duels(lines, rival):
        rows.append(
            f"| {x.name} | {x.auto:.3f} | {x.other:.3f} | {x.difference:+.3f} | {x.error:.3f} |"
        )
    return rows


def shared(
    lines: list[dict[str, Any]], name: str, *, also: tuple[str, ...] = ()
) -> dict[str, list[dict[str, Any]]]:
    """Return the folds of the automatic choice, and of each rival that has run on the same ones.

    A rival needs the folds of the first repeat. A further repeat counts if all of them have it.
    Other methods (`also`) are left out if they lack one of these folds.
    """
    methods = ("auto", *RIVALS, *also)
    found: dict[str, dict[tuple[int, int], dict[str, Any]]] = {m: {} for m in methods}
    for x in lines:
        if x["data"] == name and x["model"] in found:
            found[x["model"]][x["repeat"], x["fold"]] = x
    first = {key for key in found["auto"] if key[0] == 0}
    found = {model: own for model, own in found.items() if first <= own.keys()}
    every = set.intersection(*(set(own) for m, own in found.items() if m not in also))
    count = FOLDS.get(name, 10)
    keys = sorted(
        key for key in every if key in first or sum(r == key[0] for r, _ in every) == count
    )
    found = {model: own for model, own in found.items() if own.keys() >= set(keys)}
    return {model: [own[key] for key in keys] for model, own in found.items() if keys}


def _compared(name: str, auto: list[Any], rivals: dict[str, list[Any]]) -> Comparison:
    classes, count = name not in AMOUNTS, FOLDS.get(name, 10)
    which = int(classes)
    figure = _measure(auto, classes)[which]
    figures = {m: _measure(found, classes)[which] for m, found in rivals.items()}
    best = max(figures, key=lambda m: figures[m])
    error = _standard_error(auto, rivals[best], classes=classes)
    seconds = [
        [x["cpu_seconds"] for x in found] for found in (auto, rivals.get("gru", [])) if found
    ]
    cost = f"{np.mean(seconds[0]) / np.mean(seconds[1]):.1f}" if len(seconds) > 1 else ""
    halves = ""
    if not classes and all("halves" in x for x in auto):
        halves = f"{_measure([x | {'scores': x['halves']} for x in auto], False)[0]:.3f}"
    repeats = len({x["repeat"] for x in auto})
    folds = f"{len(auto)} of {count * repeats}"
    row = (
        f"| {name} | {folds} | {figure:.3f} | {best} {figures[best]:.3f} "
        f"| {figure - figures[best]:+.3f} | {error:.3f} | {len(rivals)} of {len(RIVALS)} | {cost} "
        f"| {halves} | {_share_of_trees(auto):.0%} |"
    )
    return Comparison(name, figure - figures[best], error, row)


def _share_of_trees(folds: list[dict[str, Any]]) -> float:
    """Return the share of the members of the automatic choice that are boosted trees."""
    members = []
    for x in folds:
        chosen = x["chosen"]
        members += chosen["mixed"] or [chosen["name"]] * chosen["members"]
    return sum(member.startswith("c-trees") for member in members) / len(members)


def _standard_error(own: list[Any], other: list[Any], *, classes: bool) -> float:
    """Return the standard error of the difference between two methods on the same folds.

    Repeats test the same sets again, so they do not lower it: it is their mean.
    """
    if classes:
        differences: dict[int, list[float]] = defaultdict(list)
        for a, b in zip(own, other, strict=True):
            areas = [_area(np.array(x["labels"]), np.array(x["scores"])) for x in (a, b)]
            differences[a["repeat"]].append(areas[0] - areas[1])
        each = [np.std(d, ddof=1) / len(d) ** 0.5 for d in differences.values() if len(d) > 1]
        return float(np.mean(each)) if each else np.nan
    y = np.concatenate([x["labels"] for x in own])
    a, b = (np.concatenate([x["scores"] for x in folds]) for folds in (own, other))
    gains = ((y - b) ** 2 - (y - a) ** 2) / y.var()
    return float(gains.std(ddof=1) / len(gains) ** 0.5)


def _alike(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines that were trained as the newest one."""
    names = ("network", "recipe", "orders")
    newest = [lines[-1].get(name) for name in names]
    return [x for x in lines if [x.get(name) for name in names] == newest]


def _row(model: str, lines: list[dict[str, Any]], protocol: Any) -> str:
    repeats = defaultdict(list)
    for line in lines:
        repeats[line["repeat"]].append(line)
    whole = [r for r in repeats.values() if len(r) == protocol.folds]
    done = str(len(whole))
    if not whole:  # better a figure that says how little stands behind it than none
        whole = [repeats[0]]
        done = f"{len(whole[0])} of {protocol.folds} folds"
    elif len(whole) < len(repeats):
        done += " (one unfinished)"
    measured = np.array([_measure(r, protocol.classes) for r in whole])
    cells = " | ".join(_cell(column) for column in measured.T)
    seconds = [x["cpu_seconds"] for x in lines if "cpu_seconds" in x]
    time = f"{np.mean(seconds):.0f}" if seconds else ""
    return f"| {model} | {cells} | {done} | {time} |"


def _cell(values: np.ndarray) -> str:
    spread = f" ± {values.std():.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _measure(folds: list[dict[str, Any]], classes: bool) -> tuple[float, ...]:
    y = np.concatenate([f["labels"] for f in folds])
    scores = np.concatenate([f["scores"] for f in folds])
    if classes:
        areas = [_area(np.array(f["labels"]), np.array(f["scores"])) for f in folds]
        p = 1 / (1 + np.exp(-np.clip(scores, -15, 15)))
        loss = log_loss(y.ravel(), p.ravel(), labels=[0, 1])
        return float(((scores > 0) == y).mean()), float(np.mean(areas)), float(loss)
    return float(1 - np.mean((y - scores) ** 2) / y.var()), float(np.abs(y - scores).mean())


def _area(y: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the ROC curve; the mean over labels that have both classes."""
    y, scores = y.reshape(len(y), -1), scores.reshape(len(y), -1)
    both = [k for k in range(y.shape[1]) if 0 < y[:, k].mean() < 1]
    return float(np.mean([roc_auc_score(y[:, k], scores[:, k]) for k in both]))
