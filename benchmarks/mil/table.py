"""The table of benchmarks/mil, drawn from its lines."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

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

Made by `python benchmarks/mil/run.py` (it goes on where it stopped; `--table` only draws this page)
from the lines of `folds.jsonl`, one per fold. Folds consist of whole sets and are the same for all
networks. Networks are those of `SetClassifier` and `SetRegressor` as they come, with no setting of
its own for any data set; EXPERIMENTS.md says which data took part in finding the defaults. ± is
the standard deviation over repeats. Classes: accuracy and area under the ROC curve (mean
over folds); amounts: R² and MAE, over all test sets of a repeat.
"baseline": mean and maximum (thrombin: and minimum) of the features, then logistic regression, for
thrombin a random forest, for documents ridge regression on means. "ted" and "ted-sentences" are the
same comments (first half to train, second half to test), as bags of words and as vectors of a
language model; Women's clothing: 4,000 reviews to train, 2,000 others to test.
"""


def write_table(
    lines: dict[Any, dict[str, Any]], path: Path, models: tuple[str, ...], protocols: dict[str, Any]
) -> None:
    """Draw the page."""
    parts = [HEAD]
    for name, protocol in protocols.items():
        rows = []
        for model in ("baseline", *models):
            mine = [x for x in lines.values() if x["data"] == name and x["model"] == model]
            if mine:
                rows.append(_row(model, _alike(mine), protocol))
        if rows:
            two = ("accuracy", "AUC") if protocol.classes else ("R²", "MAE")
            splits = f"{protocol.folds}-fold" if protocol.folds > 1 else "one split"
            parts.append(f"\n## {name} ({splits}, {protocol.repeats} repeats)\n")
            parts.append(f"| network | {two[0]} | {two[1]} | repeats done | CPU s per fold |")
            parts.append("|---|---|---|---|---|")
            parts += rows
            if name in PUBLISHED:
                parts.append(f"\nFor comparison: {PUBLISHED[name]}.")
    path.write_text("\n".join(parts) + "\n")


def _alike(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines that were trained as the newest was."""
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
    cells = [_cell(measured[:, k]) for k in range(2)]
    seconds = [x["cpu_seconds"] for x in lines if "cpu_seconds" in x]
    time = f"{np.mean(seconds):.0f}" if seconds else ""
    return f"| {model} | {cells[0]} | {cells[1]} | {done} | {time} |"


def _cell(values: np.ndarray) -> str:
    spread = f" ± {values.std():.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _measure(folds: list[dict[str, Any]], classes: bool) -> tuple[float, float]:
    y = np.concatenate([f["labels"] for f in folds])
    scores = np.concatenate([f["scores"] for f in folds])
    if classes:
        areas = [roc_auc_score(f["labels"], f["scores"]) for f in folds]
        return float(((scores > 0) == y).mean()), float(np.mean(areas))
    return float(1 - np.mean((y - scores) ** 2) / y.var()), float(np.abs(y - scores).mean())
