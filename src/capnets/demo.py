"""Train two networks on digits and compare the added values of each digit.

Every set has eight digits, so labels determine only the sum of the values. The GRU predicts labels
just as well, but the differences between its predictions for prefixes are wrong: it never saw a set
of fewer than eight digits. C-DeepSet sums its added values by construction, and recovers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.errors import InputError
from capnets.explain import Explanation, explain
from capnets.explain.render.instances import Images
from capnets.files import write_text
from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_problem
from capnets.runs import Run
from capnets.sets import Sets
from capnets.tasks import TaskSets, make, parse_task
from capnets.training.callbacks import EpochEnd
from capnets.training.recipe import recipe

__all__ = ["ABOUT", "EPOCHS", "NETWORKS", "PLAYED", "Demo", "play", "run", "to_train"]

EPOCHS = 20
NETWORKS = ("gru", "c-deepset")
#: Networks of the interactive page, side by side.
PLAYED = ("c-deepset", "c-gru", "gru")
SIZE = 8
ABOUT = (
    f"Unique Sum: the label of a set of {SIZE} digits is the sum of the distinct ones; a digit "
    "that came before adds nothing. Two networks learn it from the labels of whole sets. The GRU "
    "predicts a label. C-DeepSet, a capacity network, predicts it as the sum of what each digit "
    "adds."
)
LIMIT = (
    "On digits never seen, misread digits dominate the errors: there are only 1,797 images, of "
    "8 x 8 pixels."
)

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Network:
    """Quality of a network on new sets, of digits seen in training and of others.

    `values_…` is the mean absolute error of the added values, `right_…` the share of labels that
    are predicted exactly after rounding.
    """

    model: str
    mse_seen: float
    right_seen: float
    values_seen: float
    mse_unseen: float
    right_unseen: float
    values_unseen: float
    seconds: float


@dataclass(frozen=True)
class Instance:
    """A digit of the example: what it adds, and its values by the two networks."""

    digit: int
    expected: float
    gru: float
    capacity: float


@dataclass(frozen=True)
class Demo:
    """The result of the demonstration."""

    networks: list[Network]
    example: list[Instance]
    label: float
    page: str

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)


def run(
    folder: str | Path,
    *,
    epochs: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Demo:
    """Train both networks, explain some new sets, and write a page."""
    folder = Path(folder)
    task = _task(seed)
    runs = _train(folder, task, NETWORKS, epochs=epochs, seed=seed, progress=progress)
    chosen = _instructive(task)
    gru, capacity = (_explain(run, task, chosen) for run in runs)
    page = folder / "demo.html"
    source = f"Unique Sum, C-DeepSet trained on {len(task.train):,} sets; new sets of these digits."
    write_text(page, capacity.to_html(title="What each digit adds", source=source))
    own = capacity.span(0)
    columns = (task.classes(chosen), capacity.expected, gru.values, capacity.values)
    assert chosen.y is not None
    return Demo(
        networks=[_quality(run) for run in runs],
        example=[
            Instance(int(digit), *map(float, row))
            for digit, *row in zip(*(np.asarray(c)[own] for c in columns), strict=True)
        ],
        label=float(chosen.y[0]),
        page=str(page.resolve()),
    )


def play(folder: str | Path, *, progress: Progress | None = None) -> Path:
    """Write the interactive page of three networks; train those that are not there."""
    from capnets.pages.interactive import interactive_page
    from capnets.pages.runtime import find_runtime

    folder = Path(folder)
    # Report missing files before training, which takes longer.
    import capnets.export.onnx  # noqa: F401

    runtime = find_runtime()
    if missing := to_train(folder):
        _train(folder, _task(0), missing, epochs=None, seed=0, progress=progress)
    text = interactive_page(
        [Run(folder / name) for name in PLAYED],
        protocol="shared",
        title="What each digit adds",
        runtime=runtime,
    )
    path = folder / "play.html"
    write_text(path, text)
    return path


def _task(seed: int) -> TaskSets:
    return make(
        parse_task(
            "unique-sum:digits", sizes=SIZE, sets=20_000, valid_sets=2_000, test_sets=5_000,
            protocol="held-out", seed=seed,
        )
    )  # fmt: skip


def to_train(folder: str | Path) -> list[str]:
    """Return the networks of the interactive page that are not trained yet."""
    return [name for name in PLAYED if not _is_finished(Path(folder) / name)]


def _train(
    folder: Path,
    task: TaskSets,
    names: Sequence[str],
    *,
    epochs: int | None,
    seed: int,
    progress: Progress | None,
) -> list[Run]:
    torch.set_num_threads(1)  # faster than two for networks this small
    problem = task_problem(task)
    how = recipe("large", epochs=epochs or EPOCHS, batch_size=100, weight_decay=0.1)
    runs = []
    for number, name in enumerate(names):

        def show(line: dict[str, Any], done: int = number * how.epochs) -> None:
            if progress is not None:
                progress({**line, "epoch": done + line["epoch"]})

        plan = make_plan(problem, Options(model=name, recipe=how, seed=seed))
        runs.append(train(problem, plan, folder / name, force=True, callbacks=[EpochEnd(show)]))
    return runs


def _is_finished(folder: Path) -> bool:
    try:
        return Run(folder).finished
    except InputError:
        return False


def _quality(run: Run) -> Network:
    seen, unseen = run.metrics["shared"], run.metrics["held-out"]
    return Network(
        model=run.config.model.name,
        mse_seen=seen["mse"],
        right_seen=seen["accuracy"],
        values_seen=seen["added_value_error"],
        mse_unseen=unseen["mse"],
        right_unseen=unseen["accuracy"],
        values_unseen=unseen["added_value_error"],
        seconds=run.metrics["train_seconds"],
    )


def _explain(run: Run, task: TaskSets, sets: Sets) -> Explanation:
    names = tuple(str(c) for c in task.classes(sets))
    found = explain(run.model, sets).with_expected(task.expected(sets))
    return replace(found, instances=Images(task.pictures(sets), task.images.white, names))


def _instructive(task: TaskSets, *, most: int = 6) -> Sets:
    """Return the first few new sets of seen digits in which two digits repeat earlier ones."""
    sets = task.test_sets("shared")
    nothing = (task.expected(sets) == 0) & (task.classes(sets) > 0)
    repeats = nothing.reshape(len(sets), SIZE).sum(1)
    return sets.subset(np.flatnonzero(repeats == 2)[:most])
