"""Recipes: the settings of a training. All of them are recorded with the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

from capnets.errors import InputError, unknown
from capnets.records import Record

__all__ = ["PAPER", "RECIPES", "Recipe", "recipe"]


@dataclass(frozen=True)
class Recipe(Record):
    """Settings of a training.

    Parameters
    ----------
    epochs
        Passes over the training sets.
    batch_size
        Sets per batch. A step reads one batch, or several (`accumulate`).
    batch_instances
        Largest number of instances per batch, padding included: a batch has fewer sets where they
        are large, but at least one. None sets no limit.
    accumulate
        Batches per step: their gradients are added before the weights change, as if their sets had
        been one batch. For batches that do not fit into memory at once.
    sample_instances
        Read at most this many instances of a set, drawn anew every epoch. Sums over instances are
        scaled to the whole set, means are not. None reads all; predictions always read all.
    learning_rate
        Highest learning rate of the schedule.
    schedule
        `constant`, or `one-cycle`: up during `warmup`, then down along a cosine.
    warmup
        Share of all steps in which a one-cycle schedule rises.
    clip
        Largest norm of the gradient; None does not clip.
    start
        Initial weights: `torch`, those of torch's modules, or `wide` (see
        `capnets.training.init`).
    optimizer
        `adamw`, or `muon` for all matrices (see `capnets.training.muon`).
    weight_decay
        Decoupled weight decay, as in AdamW. With 0, AdamW is Adam.
    scale
        Compute in units of std(y) / sqrt(set size) and begin at the mean label. The unit is saved
        in the network; the data are not changed.
    reshuffle
        Read instances in a new random order every epoch instead of the order given.
    replay
        Repeat sets whose loss exceeds this multiple of the mean (see `capnets.training.replay`).
        For exact labels only; None does not replay.
    patience
        Stop after this many epochs without a lower validation loss; None never stops early.
    """

    epochs: int = 30
    batch_size: int = 250
    learning_rate: float = 5e-3
    schedule: str = "one-cycle"
    warmup: float = 0.1
    clip: float | None = 1.0
    start: str = "wide"
    optimizer: str = "adamw"
    weight_decay: float = 0.0
    scale: bool = True
    reshuffle: bool = True
    replay: float | None = None
    patience: int | None = None
    batch_instances: int | None = None
    sample_instances: int | None = None
    accumulate: int = 1

    def __post_init__(self) -> None:
        for name, choices in (
            ("schedule", SCHEDULES),
            ("start", STARTS),
            ("optimizer", OPTIMIZERS),
        ):
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)
        optional = ("clip", "replay", "patience", "batch_instances", "sample_instances")
        for name in ("epochs", "batch_size", "learning_rate", *optional):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise InputError(f"{name} must be a number above 0, not {value!r}")
        batches: Any = self.accumulate
        if not isinstance(batches, int) or batches < 1:
            raise InputError(f"accumulate must be a whole number above 0, not {batches!r}")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read a recorded recipe, also one of an earlier version."""
        values = dict(values)
        if "rehearse" in values:  # the earlier name
            values["replay"] = values.pop("rehearse")
        orders = values.pop("orders", 1)
        if orders != 1:
            raise InputError(
                f"this recipe reads every set in {orders} orders per step; training in several "
                "orders did harm and was removed, so it has to be trained again with orders=1"
            )
        if "learning_rate" in values and values["learning_rate"] is None:
            raise InputError(
                "this recipe searches for a learning rate, which was removed: "
                f"name one, such as the default {cls.learning_rate:g}"
            )
        return super().from_dict(values)

    def rate(self, step: float, steps: int) -> float:
        """Return the learning rate of a step, counted from 0; a replayed epoch has fractions."""
        return self.learning_rate * SCHEDULES[self.schedule](step / max(1, steps), self.warmup)


def _one_cycle(t: float, warmup: float) -> float:
    if t < warmup:
        return 0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * t / warmup))
    return 1e-4 + (1 - 1e-4) * 0.5 * (1 + math.cos(math.pi * (t - warmup) / (1 - warmup)))


STARTS = ("torch", "wide")
OPTIMIZERS = ("adamw", "muon")
SCHEDULES = {"constant": lambda t, warmup: 1.0, "one-cycle": _one_cycle}

#: The recipe of the paper. Printed there: Adam (no weight decay is mentioned), learning rate 0.001,
#: batches of 1,000 sets, mean squared error; no schedule, clipping or scaling is mentioned.
#: Inferred: at most 500 epochs, because the axis of one figure ends there; the epoch with the
#: lowest validation error is kept; training stops after 50 epochs without a lower one; torch's
#: default initialisation; instances in a new random order every epoch.
PAPER = Recipe(
    epochs=500,
    batch_size=1000,
    learning_rate=1e-3,
    schedule="constant",
    clip=None,
    start="torch",
    scale=False,
    patience=50,
)

RECIPES: dict[str, Recipe] = {
    "paper": PAPER,
    # For computed labels: late in training a few hard instances dominate the loss.
    "fast": Recipe(replay=30),
    # The same with Muon, which learns rare directions as quickly as common ones.
    "muon": Recipe(replay=30, optimizer="muon"),
    # For measured labels and labels given by people: `fast` without replay.
    "large": Recipe(),
    # For tens and hundreds of sets: small batches and weight decay.
    "small": Recipe(epochs=60, batch_size=32, learning_rate=4e-3, start="torch", weight_decay=1e-2),
    # For thousands of sets: `small` with initial weights that suit a deeper network.
    "medium": Recipe(epochs=40, batch_size=32, learning_rate=4e-3, weight_decay=1e-2),
}


def recipe(name: str, **changes: Any) -> Recipe:
    """Return a recipe by name, with some settings changed (None leaves a setting as it is).

    >>> recipe("fast", epochs=3).epochs
    3
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return replace(RECIPES[name], **{k: v for k, v in changes.items() if v is not None})
