"""Requested settings; None leaves a choice to `make_plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

__all__ = ["Options"]

#: Upper limit of counts; larger ones are typing errors that would run for years.
MOST = 1_000_000


@dataclass(frozen=True)
class Options:
    """Settings asked for by a user.

    Parameters
    ----------
    model
        Name of a network in the registry.
    hidden, layers, activation, aggregation, baseline, dropout, members
        As in `ModelSpec`.
    orders
        Random orders that predictions are averaged over; 1 keeps the given order.
    sort
        Read instances sorted by a feature (its name or number) or by `worth`.
    priors
        Prior knowledge about added values, as penalties.
    recipe
        A recipe, its name, or a mapping that changes single settings of the default recipe.
    loss
        For amounts: `squared` (by default), `absolute`, `huber` or `quantile:0.9`. It needs a named
        network, because networks are compared by their squared error.
    epochs
        Number of epochs, if not the recipe's.
    early_stopping
        True (hold out a tenth of the sets), a share to hold out, False, or `auto`: True where
        there are 5,000 sets or more.
    teacher
        `pooled`: learn from a forest and gradient boosting on pooled statistics, which label
        additional subsets.
    calibrate
        Whether to calibrate the probabilities of classes where sets are few.
    seed
        Seed of initial weights, orders and splits.
    """

    model: str | None = None
    hidden: int | None = None
    layers: int | None = None
    activation: str | None = None
    aggregation: str | None = None
    baseline: str | None = None
    dropout: float | None = None
    members: int | None = None
    orders: int | None = None
    sort: str | int | None = None
    priors: tuple[Prior, ...] = ()
    recipe: str | Recipe | Mapping[str, Any] | None = None
    loss: str | None = None
    epochs: int | None = None
    early_stopping: bool | float | str = "auto"
    teacher: str | None = None
    calibrate: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        _check_number("dropout", self.dropout, 0, 1)
        for name in ("hidden", "layers", "members", "orders", "epochs"):
            _check_whole(name, getattr(self, name), 1, MOST)
        _check_whole("seed", self.seed, 0, 2**63 - 1)
        stop = self.early_stopping
        if not (isinstance(stop, bool) or stop == "auto" or _is_share(stop)):
            raise InputError(
                f"early_stopping must be True, False, 'auto' or a share above 0 and below 1, "
                f"not {stop!r}"
            )
        if not isinstance(self.recipe, str | Recipe | Mapping | None):
            raise InputError(
                f"recipe must be a name, a Recipe or a dictionary of changes, not {self.recipe!r}"
            )
        if isinstance(self.recipe, Mapping):
            for name, value in self.recipe.items():
                if isinstance(value, float) and not math.isfinite(value):
                    raise InputError(f"{name} must be a finite number, not {value}")


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < 1


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    if value is None:
        return
    if not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise InputError(f"{name} must be from {low} to {high:,}, not {value}")
