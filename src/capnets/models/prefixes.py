"""Networks whose added values are differences between the predictions of prefixes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from capnets.models.base import AddedValues, Instances, Level, Mask, Prediction, SingleModel

__all__ = ["PrefixModel", "WholeSetModel", "differences", "prefix_by_prefix"]

#: Upper bound on the numbers (instances and pairs of them) in one pass over prefixes.
PREFIX_NUMBERS = 2**24


class PrefixModel(SingleModel):
    """A network whose added values are differences between the predictions of prefixes."""

    @abstractmethod
    def predict_prefixes(self, x: Instances) -> AddedValues:
        """Compute the predictions of the first, the first two, … instances, in units."""

    def values(self, x: Instances) -> AddedValues:
        return differences(self.predict_prefixes(x), self.empty())

    def empty(self) -> Level:
        return torch.zeros_like(self.unit)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start at the mean label, whatever the size of a set."""
        self._start_at(unit, label / unit)


class WholeSetModel(PrefixModel):
    """A network that reads a set as a whole: one prediction per prefix gives its added values."""

    rereads = True

    def predict_prefixes(self, x: Instances) -> AddedValues:
        return prefix_by_prefix(self.predict, x)


def differences(prefixes: AddedValues, empty: Level) -> AddedValues:
    """Return the differences between consecutive predictions, starting from `empty`."""
    return prefixes.diff(dim=1, prepend=empty.expand_as(prefixes[:, :1]))


def prefix_by_prefix(predict: Callable[[Instances, Mask], Prediction], x: Instances) -> AddedValues:
    """Predict all prefixes of all sets in one batch, or in several if memory requires it."""
    sets, size = x.shape[:2]
    prefix = torch.ones(size, size, dtype=torch.bool, device=x.device).tril()
    at_once = max(1, PREFIX_NUMBERS // (size * (size + x.shape[2:].numel())))
    parts = [
        predict(x[rows // size], prefix[rows % size])
        for rows in torch.split(torch.arange(sets * size, device=x.device), at_once)
    ]
    predictions = torch.cat(parts)
    return predictions.view(sets, size, predictions.shape[1])
