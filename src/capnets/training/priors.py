"""Priors: knowledge about added values, as penalties in training.

Added values are outputs of the network, so such penalties are cheap. Any object with
`penalty(model, batch, values)` and `to_dict()` is a prior that `fit` accepts.

Losses and penalties are in units of the network (`model.unit`), so that a weight does not depend on
the scale of the labels. Bounds are in the unit of the labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from capnets.errors import InputError, unknown
from capnets.models.base import AddedValues, SetModel
from capnets.nn.random import generator
from capnets.records import Record
from capnets.sets.batch import Batch

__all__ = [
    "PRIORS",
    "Consistent",
    "LowerBound",
    "Prior",
    "Sparse",
    "UpperBound",
    "check_priors",
    "prior_from_dict",
]


@runtime_checkable
class Prior(Protocol):
    """Prior knowledge about added values."""

    def penalty(self, model: SetModel, batch: Batch, values: AddedValues) -> Tensor:
        """Return a penalty to add to the loss; `values` are those of the batch, 0 at padding."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object that names the prior as `kind`."""


@dataclass(frozen=True)
class _Weighted(Record):
    weight: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(
                    f"the {field.name} of a prior must be a finite number, not {value!r}"
                )
        if self.weight < 0:
            raise InputError(f"the weight of a prior must not be negative, but is {self.weight}")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object that names the prior as `kind`."""
        return {"kind": next(k for k, v in PRIORS.items() if v is type(self)), **super().to_dict()}

    def _mean(self, excess: AddedValues, batch: Batch) -> Tensor:
        count = excess.numel() if batch.mask is None else batch.mask.sum() * excess.shape[2]
        return self.weight * excess.sum() / count


@dataclass(frozen=True)
class UpperBound(_Weighted):
    """Penalise added values above `bound` by their mean squared excess, in units."""

    bound: float = 1.0

    def penalty(self, model: SetModel, batch: Batch, values: AddedValues) -> Tensor:
        """Return the mean over instances, times the weight."""
        excess = torch.relu((values - self.bound) / model.unit) ** 2
        return self._mean(excess if self.bound >= 0 else _real(excess, batch), batch)


@dataclass(frozen=True)
class LowerBound(_Weighted):
    """Penalise added values below `bound` by their mean squared shortfall, in units."""

    bound: float = 0.0

    def penalty(self, model: SetModel, batch: Batch, values: AddedValues) -> Tensor:
        """Return the mean over instances, times the weight."""
        lack = torch.relu((self.bound - values) / model.unit) ** 2
        return self._mean(_real(lack, batch), batch)


@dataclass(frozen=True)
class Sparse(_Weighted):
    """Penalise the mean absolute added value, in units, so that few instances add anything."""

    def penalty(self, model: SetModel, batch: Batch, values: AddedValues) -> Tensor:
        """Return the mean over instances, times the weight."""
        return self._mean((values / model.unit).abs(), batch)


@dataclass(frozen=True)
class Consistent(_Weighted):
    r"""Penalise pairs of neighbours whose joint added value depends on their order.

    .. math:: v_i(C) + v_j(C \cup i) = v_j(C) + v_i(C \cup j)

    If this holds for all pairs, predictions do not depend on the order. Every batch is read once
    more with neighbours swapped, every other pair at once. The penalty is the mean squared
    difference of the sums of added values after each pair, in units of the network. Training takes
    about twice as long.
    """

    def penalty(self, model: SetModel, batch: Batch, values: AddedValues) -> Tensor:
        """Return the mean over pairs, times the weight.

        A random draw decides if pairs begin with the first or the second instance.
        """
        here = torch.arange(values.shape[1], device=values.device)
        first = torch.randint(2, (), generator=generator(torch.device("cpu")))
        ends = here[1 + int(first) :: 2]
        if not len(ends):
            return values.new_zeros(())
        order = here.clone()
        order[ends], order[ends - 1] = ends - 1, ends
        if batch.mask is not None:  # an instance without a neighbour keeps its place
            order = torch.where(batch.mask[:, torch.maximum(here, order)], order, here)
        x = batch.reorder(order).x.to(values.dtype)
        exchanged = model.added_values(x, batch.mask)
        gaps = ((values - exchanged).cumsum(1)[:, ends] / model.unit).square()
        if batch.mask is None:
            return self.weight * gaps.mean()
        pairs = batch.mask[:, ends]
        count = pairs.sum().clamp_min(1) * gaps.shape[2]
        return self.weight * (gaps * pairs[..., None]).sum() / count


def _real(excess: AddedValues, batch: Batch) -> AddedValues:
    return excess if batch.mask is None else excess * batch.mask[..., None]


PRIORS: dict[str, type[_Weighted]] = {
    "upper-bound": UpperBound,
    "lower-bound": LowerBound,
    "sparse": Sparse,
    "consistent": Consistent,
}


def check_priors(priors: Sequence[Prior]) -> None:
    """Raise if something is not a sequence of priors."""
    if isinstance(priors, str | Prior) or not isinstance(priors, Sequence):
        raise InputError(f"priors must be a list, such as [Consistent()], not {priors!r}")
    for prior in priors:
        if isinstance(prior, type) or not isinstance(prior, Prior):
            raise InputError(
                f"{prior!r} is not a prior: pass an object such as Consistent(), or your own with "
                "`penalty` and `to_dict`"
            )


def prior_from_dict(values: dict[str, Any]) -> Prior:
    """Return the prior that `to_dict` described.

    >>> prior_from_dict({"kind": "upper-bound", "bound": 1.0})
    UpperBound(weight=1.0, bound=1.0)
    """
    values = dict(values)
    kind = values.pop("kind", None)
    if kind not in PRIORS:
        raise unknown("prior", kind, PRIORS)
    prior: Any = PRIORS[kind].from_dict(values)
    return prior  # type: ignore[no-any-return]
