"""Interface of an aggregation: how the decoded instances of a set become its prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capnets.models.base import AddedValues, Level, Mask, Prediction, State

__all__ = ["AddedValues", "Aggregation", "Decoded", "Level", "Mask", "Prediction", "State"]

Decoded = Float[Tensor, "sets size decoded"]
DecodedOnce = Float[Tensor, "sets decoded"]  # one instance of each set


class Aggregation(nn.Module, ABC):
    """Turn the decoder's numbers into added values and predictions, in units.

    An aggregation owns the baseline: the prediction for the empty set.

    Parameters
    ----------
    outputs
        Number of labels per set.
    learned
        Whether the baseline is learned. Otherwise it is 0, as in the paper.

    Attributes
    ----------
    heads
        Numbers that the decoder provides per output. Heads are concatenated: all outputs of the
        first head, then all outputs of the second.
    memory
        Numbers per output that are remembered between two instances; they begin at 0.
    signed
        Whether added values are signed by construction, so that no activation may precede it.
    probability
        Whether predictions are probabilities.
    """

    heads: int
    memory: int
    signed: bool = True
    probability: bool = False
    base: Tensor | None

    def __init__(self, outputs: int, *, learned: bool = False) -> None:
        super().__init__()
        self.outputs = outputs
        self.register_parameter("base", nn.Parameter(torch.zeros(outputs)) if learned else None)

    @abstractmethod
    def empty(self, like: Tensor) -> Level:
        """Return the baseline, with the type and device of `like`."""

    @abstractmethod
    def values(self, decoded: Decoded) -> AddedValues:
        """Return the added values of all instances."""

    @abstractmethod
    def predict(self, decoded: Decoded, mask: Mask) -> Prediction:
        """Return the predictions of whole sets."""

    @abstractmethod
    def next_value(self, decoded: DecodedOnce, state: State) -> tuple[Prediction, State]:
        """Return the added value of the next instance of each set, and the new state."""

    @abstractmethod
    def start(self, weight: Tensor, bias: Tensor, *, level: Level, size: float) -> None:
        """Initialize the last layer of the decoder such that predictions begin at `level`.

        Parameters
        ----------
        weight, bias
            Of the last layer. The bias is set in place; rows of the weight only if a head starts
            at 0.
        level
            Mean label, in units.
        size
            Mean number of instances in a set.
        """


def base_or_zero(base: Tensor | None, like: Tensor, outputs: int) -> Level:
    """Return a learned baseline as it is, or zeros."""
    return like.new_zeros(outputs) if base is None else base
