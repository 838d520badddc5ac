"""Requested settings; None leaves a choice to `make_plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Settings asked for by a user.

    Parameters
    ----------
    model
        Name of a network in the registry.
    hidden, layers, activation, dropout, members
        As in `ModelSpec`.
    orders
        Random orders that predictions are averaged over; 1 reads instances as they come.
    sort
        Read instances sorted by a feature (its name or number) or by `worth`.
    priors
        Prior knowledge about added values, as penalties.
    recipe
        A recipe, its name, or a mapping that changes single settings of the default recipe.
    epochs
        Number of epochs, if not the recipe's.
    early_stopping
        True, False, or `auto`: hold out validation sets where there are 5,000 sets or more.
    validation_fraction
        Share of the sets to hold out for early stopping.
    seed
        Seed of initial weights, orders and splits.
    """

    model: str | None = None
    hidden: int | None = None
    layers: int | None = None
    activation: str | None = None
    dropout: float | None = None
    members: int | None = None
    orders: int | None = None
    sort: str | int | None = None
    priors: tuple[Prior, ...] = ()
    recipe: str | Recipe | Mapping[str, Any] | None = None
    epochs: int | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    seed: int = 0
