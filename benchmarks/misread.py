"""Find images that a network misreads, and their share of its error.

    capnets task train WTri --model c-deepset --recipe large -o before
    capnets task train WTri --model c-deepset -o after
    python benchmarks/misread.py before after --figure docs/images/misread.png

A single digit adds its own value (US, WTri), so accurate added values show how a network reads an
image. Images are from the training sets, errors from validation sets. The figure shows images that
the first run misreads, ordered by the number of runs that misread them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.evaluate import predict
from capnets.learn.tasks import task_of
from capnets.runs import Run
from capnets.sets import Sets
from capnets.sets.ragged import owners_of
from capnets.tasks import TaskSets

SHOWN = 24


def main() -> None:
    """Print a line per run; draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for folder in given.runs:
        run = Run(folder)
        task = task_of(run)
        assert isinstance(task, TaskSets)
        read, line = misread(run, task)
        found[folder] = read
        print({"run": str(folder), "seed": run.config.seed, **line}, flush=True)
    print({"misread by all": len(set.intersection(*map(set, found.values())))})
    if given.figure:
        draw(given.figure, task, list(found.values()))


def misread(run: Run, task: TaskSets) -> tuple[dict[int, float], dict[str, Any]]:
    """Rows of misread images with what they were read as; and what sets with them cost."""
    rows = task.images.rows("train")
    alone = Sets(task.valid.instances, rows, np.arange(len(rows) + 1))
    values = predict(run.model, alone)
    wrong = np.abs(values - task.images.classes[rows]) > 0.5
    valid = task.valid
    errors = np.square(predict(run.model, valid) - valid.y)
    sets = owners_of(valid.sizes)
    hit = np.zeros(len(valid), bool)
    hit[sets[np.isin(valid.index, rows[wrong])]] = True
    return dict(zip(rows[wrong].tolist(), values[wrong].tolist(), strict=True)), {
        "images": len(rows),
        "misread": int(wrong.sum()),
        "valid MSE": round(float(errors.mean()), 4),
        "of it in sets with a misread image": round(float(errors[hit].sum() / errors.sum()), 3),
        "such sets": round(float(hit.mean()), 4),
    }


def draw(path: Path, task: TaskSets, found: list[dict[int, float]]) -> None:
    """Images in a row, with their labels and what the first run reads."""
    import matplotlib.pyplot as plt

    often = sorted(found[0], key=lambda row: (-sum(row in others for others in found), row))
    figure, axes = plt.subplots(2, SHOWN // 2, figsize=(12, 2.6), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, row in zip(axes.flat, often, strict=False):
        ax.imshow(task.images.pixels[row].squeeze(), cmap="gray_r")
        ax.set_title(f"{task.images.classes[row]}, read {found[0][row]:.1f}", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
