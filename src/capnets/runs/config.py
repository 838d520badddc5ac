"""Configuration of a run: network, recipe, seed and data."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from capnets.errors import InputError
from capnets.models import ModelSpec
from capnets.records import Record
from capnets.training.recipe import Recipe

__all__ = ["RunConfig", "versions"]

FORMAT = 1


@dataclass(frozen=True)
class RunConfig(Record):
    """Configuration of a run: network, recipe, seed and data.

    Parameters
    ----------
    model
        The network.
    recipe
        The training recipe.
    seed
        Random seed for initial weights and instance orders.
    data
        Source of the sets, as a JSON object (a task, or a file and its columns).
    loss
        The training loss.
    priors
        Knowledge about added values, as JSON objects.
    """

    model: ModelSpec
    recipe: Recipe
    seed: int
    data: dict[str, Any]
    loss: str = "squared"
    priors: tuple[dict[str, Any], ...] = ()
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    format: int = FORMAT

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Smallest and largest size of the training sets; None if the run does not record them."""
        found = self.data.get("sizes")
        return None if found is None else (int(found[0]), int(found[1]))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunConfig:
        """Make a configuration from the output of `to_dict`; refuse newer formats."""
        if values.get("format", 0) > FORMAT:
            raise InputError(
                f"a newer capnets wrote this (format {values['format']}; "
                f"this one reads up to {FORMAT}); upgrade it"
            )
        sizes = values["data"].get("sizes", [0, 0])
        if [type(size) for size in sizes] != [int, int]:
            raise TypeError(f"sizes are {sizes!r}, not two whole numbers")
        parts = {"model": ModelSpec.from_dict, "recipe": Recipe.from_dict}
        return super().from_dict({k: parts[k](v) if k in parts else v for k, v in values.items()})


def versions() -> dict[str, str]:
    """Return the versions of Python and of the main libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in ("capnets", "torch", "numpy", "lightning-fabric", "scikit-learn"):
        with suppress(PackageNotFoundError):  # lightning-fabric is an extra
            found[name] = version(name)
    return found
