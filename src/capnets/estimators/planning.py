"""From the parameters of an estimator to what is trained: what is left open depends on the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from capnets.errors import InputError, unknown
from capnets.estimators.inputs import Given
from capnets.models import ModelSpec
from capnets.models.sorted import BY_WORTH
from capnets.training.presets import Preset
from capnets.training.recipe import Recipe
from capnets.training.recipe import recipe as find_recipe

__all__ = ["Parameters", "network", "orders", "recipe", "seed"]


class Parameters(Protocol):
    """What an estimator was asked for; None leaves the choice to the preset."""

    model: str
    hidden: int | None
    layers: int | None
    activation: str
    dropout: float | None
    members: int | None
    orders: int | None
    sort: str | int | None
    recipe: str | Recipe | Mapping[str, Any] | None
    epochs: int | None


def network(asked: Parameters, given: Given, preset: Preset, *, outputs: int) -> ModelSpec:
    """The network."""
    chosen = {
        name: getattr(preset, name) if getattr(asked, name) is None else getattr(asked, name)
        for name in ("hidden", "layers", "dropout", "members")
    }
    return ModelSpec(
        asked.model,
        in_features=given.sets.in_features,
        outputs=outputs,
        activation=asked.activation,
        inputs="standardize",
        order=_sorting(asked.sort, given),
        **chosen,
    )


def _sorting(sort: str | int | None, given: Given) -> str | int:
    """What instances are sorted by, as `ModelSpec` calls it."""
    if sort is None:
        return "given"
    if given.order:
        raise InputError(
            f"instances cannot be read in the order of {given.order!r} "
            f"and sorted by {sort!r}; leave one of the two out"
        )
    names = given.sets.feature_names or ()
    if sort in names:
        return list(names).index(sort)
    if given.schema is not None and sort in given.schema.numbers:
        return given.schema.numbers[sort]
    if isinstance(sort, str) and sort != BY_WORTH:
        raise unknown("feature", sort, [BY_WORTH, *names])
    return sort


def recipe(asked: Parameters, given: Given, preset: Preset) -> Recipe:
    """How it is trained; a mapping changes single points of the preset's recipe."""
    chosen = preset.recipe if asked.recipe is None else asked.recipe
    if isinstance(chosen, Mapping):
        found = Recipe.from_dict(find_recipe(preset.recipe).to_dict() | dict(chosen))
    else:
        found = find_recipe(chosen) if isinstance(chosen, str) else chosen
    if asked.epochs is not None:
        found = replace(found, epochs=asked.epochs)
    if not given.order:
        return found
    if found.orders > 1:
        raise InputError(
            f"instances cannot be read in the order of {given.order!r} "
            f"and in {found.orders} orders at each step; leave one of the two out"
        )
    # Where order has a meaning, instances are read in it, in training too.
    return replace(found, reshuffle=False)


def orders(asked: Parameters, given: Given, preset: Preset) -> int:
    """In how many orders predictions read a set; one where there is only one."""
    if given.order or asked.sort is not None:
        return 1
    wanted = preset.orders if asked.orders is None else asked.orders
    if wanted < 1 or int(wanted) != wanted:
        raise InputError(f"orders must be a whole number of at least 1, not {wanted!r}")
    return int(wanted)


def seed(random_state: Any) -> int:
    """One whole number from all that scikit-learn takes for a random state."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InputError(f"random_state must not be negative, but is {random_state}")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
