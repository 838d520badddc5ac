"""Recipes: how a network is trained. Everything in one is recorded with the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from capnets.errors import InputError, unknown
from capnets.records import Record

__all__ = ["RECIPES", "Recipe", "recipe"]


@dataclass(frozen=True)
class Recipe(Record):
    """How a network is trained.

    Parameters
    ----------
    epochs
        How often every set is seen.
    batch_size
        Sets per step.
    learning_rate
        The highest rate; None looks for one first (see `capnets.training.rate`).
    schedule
        `constant`, or `one-cycle`: up for `warmup` of all steps, then down along a cosine.
    warmup
        The share of all steps in which a one-cycle schedule rises.
    clip
        The largest norm of the gradient; None leaves it alone.
    start
        Start weights: `torch`, as torch draws them, or `wide` (see `capnets.training.init`).
    optimizer
        `adamw`, or `muon` for all matrices (see `capnets.training.muon`).
    weight_decay
        Decoupled, as in AdamW.
    scale
        Compute in units of std(y) / sqrt(set size) and begin at the mean label. Part of the
        recipe and saved in the network; the data are never changed.
    reshuffle
        Feed instances in a fresh random order every epoch; otherwise in the order given.
    orders
        In how many orders every set is read at each step. Their mean is the prediction that is
        trained (Janossy pooling; Murphy et al., ICLR 2019), so predict with a mean over orders too.
    rehearse
        Sets with an error of more than so many times the mean are read more often (see
        `capnets.training.replay`). For exact labels; None, where they are noisy, does not.
    patience
        Stop after so many epochs without a better validation error; None never stops early.
    """

    epochs: int = 30
    batch_size: int = 250
    learning_rate: float | None = 5e-3
    schedule: str = "one-cycle"
    warmup: float = 0.1
    clip: float | None = 1.0
    start: str = "wide"
    optimizer: str = "adamw"
    weight_decay: float = 0.0
    scale: bool = True
    reshuffle: bool = True
    orders: int = 1
    rehearse: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        for name, choices in (
            ("schedule", SCHEDULES),
            ("start", STARTS),
            ("optimizer", OPTIMIZERS),
        ):
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)
        positive = "epochs batch_size learning_rate clip orders rehearse patience"
        for name in positive.split():
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(f"{name} must be above 0, not {value}")

    def rate(self, step: float, steps: int, *, highest: float) -> float:
        """The learning rate of a step."""
        return highest * SCHEDULES[self.schedule](step / max(1, steps), self.warmup)


def _one_cycle(t: float, warmup: float) -> float:
    if t < warmup:
        return 0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * t / warmup))
    return 1e-4 + (1 - 1e-4) * 0.5 * (1 + math.cos(math.pi * (t - warmup) / (1 - warmup)))


STARTS = ("torch", "wide")
OPTIMIZERS = ("adamw", "muon")
SCHEDULES = {"constant": lambda t, warmup: 1.0, "one-cycle": _one_cycle}

RECIPES: dict[str, Recipe] = {
    "paper": Recipe(
        epochs=500,
        batch_size=1000,
        learning_rate=1e-3,
        schedule="constant",
        clip=None,
        start="torch",
        scale=False,
    ),
    # For labels that are computed: what is left to learn in the end is a few instances.
    "fast": Recipe(rehearse=30),
    # The same with steps that learn what is rare as soon as what is common.
    "muon": Recipe(rehearse=30, optimizer="muon"),
    # The first of them for labels that were measured, or given by people.
    "large": Recipe(),
    # For tens of sets: more epochs, because an epoch is only a step or two.
    "tiny": Recipe(epochs=120, batch_size=32, learning_rate=4e-3, start="torch", weight_decay=1e-2),
    # For hundreds of sets: small steps through all of them, and weights held small.
    "small": Recipe(epochs=60, batch_size=32, learning_rate=4e-3, start="torch", weight_decay=1e-2),
    # For thousands: as small steps, from start weights under which a deeper network learns at once.
    "medium": Recipe(epochs=40, batch_size=32, learning_rate=4e-3, weight_decay=1e-2),
}


def recipe(name: str, **changes: Any) -> Recipe:
    """A recipe by name, with some settings changed (None leaves a setting as it is).

    >>> recipe("fast", epochs=3).epochs
    3
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return replace(RECIPES[name], **{k: v for k, v in changes.items() if v is not None})
