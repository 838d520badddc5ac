"""Describe a network for the registry, and build the parts that networks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import nn

from capnets.models.base import SetModel
from capnets.nn import encoders

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["Entry", "decoder", "encoder"]

Make = Callable[["ModelSpec"], SetModel]


@dataclass(frozen=True)
class Entry:
    """A network of the registry.

    Parameters
    ----------
    label
        Name in tables.
    about
        Description in a few words.
    make
        Builds the network from its settings.
    aggregations
        Values of the setting `aggregation` that the network supports.
    baselines
        Values of the setting `baseline` that the network supports.
    counterpart
        The network with the same encoder, cell and decoder that is not additive.
    drops_out
        Whether the network applies `dropout` itself, instead of its inputs.
    """

    label: str
    about: str
    make: Make
    aggregations: tuple[str, ...] = ("sum",)
    baselines: tuple[str, ...] = ("none",)
    counterpart: str | None = None
    drops_out: bool = False


def encoder(spec: ModelSpec) -> nn.Sequential:
    """Build the paper's encoder, 64 wide inside unless the settings name another width."""
    width = spec.width or encoders.WIDTH
    return encoders.encoder(spec.in_features, spec.hidden, layers=spec.layers, width=width)


def decoder(spec: ModelSpec, *, in_features: int | None = None, heads: int = 1) -> nn.Sequential:
    """Build the paper's decoder, with `heads` numbers per output."""
    return encoders.decoder(
        in_features or spec.hidden, heads * spec.outputs, layers=spec.layers, hidden=spec.hidden
    )
