"""The demonstration: two networks, one with added values, on digits that ship with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.evaluate import added_values
from capnets.experiment import train_task
from capnets.models import ModelSpec
from capnets.tasks import make, parse_task
from capnets.training.recipe import recipe

__all__ = ["ABOUT", "EPOCHS", "Demonstration", "run"]

EPOCHS = 25
ABOUT = """\
Unique Sum: the label of a set of digits is the sum of the distinct ones; a digit that came before
adds nothing. Two networks learn it from labels of whole sets alone. The GRU predicts the label; the
C-GRU, a capacity network of the same size, predicts it as the sum of what each digit adds."""


@dataclass(frozen=True)
class Network:
    """How well one network did on test sets."""

    model: str
    mse: float
    accuracy: float
    added_value_error: float
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
    """Train both networks, explain one test set, and write the page.

    Sets have one to ten digits: with all sets equally large nothing would tell a network *when* to count
    a digit, and its values could be right in sum but late.
    """
    folder = Path(folder)
    torch.set_num_threads(1)  # quicker than two for networks this small
    spec = parse_task(
        "unique-sum:digits",
        sizes=range(1, 11),
        sets=20_000,
        valid_sets=2_000,
        test_sets=2_000,
        seed=seed,
    )
    task = make(spec)
    how = recipe("fast", epochs=epochs or EPOCHS)
    networks = []
    for number, name in enumerate(("gru", "c-gru")):

        def show(line: dict[str, Any], done: int = number * how.epochs) -> None:
            if progress is not None:
                progress({**line, "epoch": done + line["epoch"]})

        trained = train_task(
            folder / name, task, ModelSpec(name), recipe=how, seed=seed, force=True, progress=show
        )
        m = trained.metrics["shared"]
        networks.append(
            Network(
                name,
                m["mse"],
                m["accuracy"],
                m["added_value_error"],
                trained.metrics["train_seconds"],
            )
        )
    sizes = task.test.sizes
    chosen = task.test.subset([int(np.flatnonzero(sizes == 8)[0])])
    values, expected = added_values(trained.model, chosen), task.expected(chosen)
    example = [
        Instance(int(c), float(v), float(e), float(r))
        for c, v, e, r in zip(task.classes(chosen), values, expected, values.cumsum(), strict=True)
    ]
    assert chosen.y is not None
    return Demonstration(networks, example, float(chosen.y[0]), str(folder / "demo.html"))
