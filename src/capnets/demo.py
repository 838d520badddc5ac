"""The demonstration: two networks, one with added values, on digits that ship with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.explain import explain
from capnets.explain.render.instances import Images
from capnets.files import write_text
from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_problem
from capnets.sets import Array, Sets
from capnets.sets.ragged import owners_of
from capnets.tasks import TaskSets, make, parse_task
from capnets.training.callbacks import EpochEnd
from capnets.training.recipe import recipe

__all__ = ["ABOUT", "EPOCHS", "Demonstration", "run"]

EPOCHS = 20
ABOUT = """\
Unique Sum: the label of a set of digits is the sum of the distinct ones; a digit that came before
adds nothing. Two networks learn it from the labels of whole sets. The GRU predicts a label; the
C-GRU, a capacity network of the same size, predicts it as the sum of what each digit adds."""


@dataclass(frozen=True)
class Network:
    """How well one network did on test sets of pictures that it was not trained on."""

    model: str
    mse: float
    accuracy: float
    added_value_error: float
    mse_seen: float
    seconds: float


@dataclass(frozen=True)
class Instance:
    """One digit of the example."""

    digit: int
    added_value: float
    expected: float
    running_sum: float


@dataclass(frozen=True)
class Demonstration:
    """What came of it."""

    networks: list[Network]
    example: list[Instance]
    label: float
    page: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return asdict(self)


def run(
    folder: str | Path,
    *,
    epochs: int | None = None,
    seed: int = 0,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Demonstration:
    """Train both networks, explain some test sets, and write the page.

    Sets have one to ten digits: if all were equally large nothing would tell a network *when* to
    count a digit, and its values could be right in sum but late.
    """
    folder = Path(folder)
    torch.set_num_threads(1)  # quicker than two for networks this small
    task = make(
        parse_task(
            "unique-sum:digits",
            sizes=range(1, 11),
            sets=20_000,
            valid_sets=2_000,
            test_sets=5_000,
            protocol="held-out",
            seed=seed,
        )
    )
    problem = task_problem(task)
    how = recipe("large", epochs=epochs or EPOCHS, batch_size=100, weight_decay=0.1)
    runs = []
    for number, name in enumerate(("gru", "c-gru")):

        def show(line: dict[str, Any], done: int = number * how.epochs) -> None:
            if progress is not None:
                progress({**line, "epoch": done + line["epoch"]})

        plan = make_plan(problem, Options(model=name, recipe=how, seed=seed))
        runs.append(train(problem, plan, folder / name, force=True, callbacks=[EpochEnd(show)]))
    networks = [
        Network(
            model=r.config.model.name,
            mse=r.metrics["held-out"]["mse"],
            accuracy=r.metrics["held-out"]["accuracy"],
            added_value_error=r.metrics["held-out"]["added_value_error"],
            mse_seen=r.metrics["shared"]["mse"],
            seconds=r.metrics["train_seconds"],
        )
        for r in runs
    ]
    chosen = _telling(task)
    page = folder / "demo.html"
    explanation = explain(runs[-1].model, chosen).with_expected(task.expected(chosen))
    names = tuple(str(c) for c in task.classes(chosen))
    images = Images(task.pictures(chosen), white=task.images.white, names=names)
    about = f"Unique Sum, C-GRU trained on {len(task.train):,} sets of other pictures."
    write_text(
        page, explanation.to_html(instances=images, title="What each digit added", source=about)
    )

    first = chosen[:1]
    values = explanation.values[: len(first.index)]
    assert chosen.y is not None
    return Demonstration(
        networks, _example(task, first, values), float(chosen.y[0]), str(page.resolve())
    )


def _telling(task: TaskSets, *, most: int = 6) -> Sets:
    """The first few test sets of eight digits, two of which came before."""
    expected = task.expected(task.test)
    owners = owners_of(task.test.sizes)
    nothing = np.bincount(owners, weights=expected == 0, minlength=len(task.test))
    return task.test.subset(np.flatnonzero((task.test.sizes == 8) & (nothing == 2))[:most])


def _example(task: TaskSets, sets: Sets, values: Array) -> list[Instance]:
    columns = (task.classes(sets), values, task.expected(sets), values.cumsum())
    return [Instance(int(c), *map(float, row)) for c, *row in zip(*columns, strict=True)]
