r"""Average several networks.

.. math:: v_i = \tfrac1m (v_i^{(1)} + … + v_i^{(m)}), \qquad Y = \tfrac1m (Y^{(1)} + … + Y^{(m)})

A mean of additive networks is additive, so an ensemble keeps exact added values. Its baseline is
the mean of the baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.models.base import (
    AddedValues,
    Instances,
    Level,
    Mask,
    Prediction,
    Read,
    SetModel,
    State,
    SteppingModel,
)
from capnets.nn import masked
from capnets.nn.cells import check_state

__all__ = ["Ensemble"]


def _combined(rule: Callable[[Iterable[bool]], bool], name: str) -> Any:
    """Return a property: what the members declare as `name`, combined by `all` or `any`."""
    return property(lambda self: rule(getattr(member, name) for member in self.each))


class Ensemble(SetModel):
    """Average networks that were trained separately (see `capnets.training.fit`).

    Parameters
    ----------
    members
        Networks with the same inputs and outputs.

    Examples
    --------
    >>> from capnets.models import build
    >>> twins = Ensemble([build("c-gru", in_features=3, seed=k) for k in range(2)])
    >>> x = torch.randn(2, 5, 3)
    >>> torch.allclose(twins(x), twins.added_values(x).sum(1), atol=1e-6)
    True
    """

    def __init__(self, members: Sequence[SetModel]) -> None:
        if not members:
            raise InputError("an ensemble needs at least one member")
        first = members[0]
        for name in ("in_features", "outputs", "covariates"):
            attribute = "features_in" if name == "in_features" else name
            sizes = {getattr(m, attribute) for m in members} - {None}  # None: not declared
            if len(sizes) > 1:
                raise InputError(
                    f"the members of an ensemble must have the same {name}, not "
                    + " and ".join(map(str, sorted(sizes)))
                )
        super().__init__(in_features=first.features_in, outputs=first.outputs)
        self.members = nn.ModuleList(members)

    @property
    def each(self) -> list[SetModel]:
        """Members, typed as set networks."""
        return [m for m in self.members if isinstance(m, SetModel)]

    @property
    def unit(self) -> Tensor:  # type: ignore[override]
        """Mean of the members' units; the saved buffer of this name is not used."""
        return torch.stack([m.unit for m in self.each]).mean(0)

    # An average is additive, or has a closed form, if all members do; it depends on the order, or
    # has a gradient, if any member does.
    additive = _combined(all, "additive")
    closed_form = _combined(all, "closed_form")
    steps = _combined(all, "steps")
    ordered = _combined(any, "ordered")
    positional = _combined(any, "positional")
    pools = _combined(any, "pools")
    probability = _combined(any, "probability")
    rereads = _combined(any, "rereads")
    smooth = _combined(any, "smooth")

    @property
    def idle(self) -> tuple[str, ...]:  # type: ignore[override]
        """Patterns of the members' idle parameters."""
        return tuple(f"members.{k}.{name}" for k, m in enumerate(self.each) for name in m.idle)

    @property
    def covariates(self) -> int:
        """Number of covariates of each member."""
        return self.each[0].covariates

    def baselines(self, x: Instances) -> Prediction:
        """Return the mean of the members' baselines."""
        return torch.stack([m.baselines(x) for m in self.each]).mean(0)

    def read(self, x: Instances, mask: Mask) -> Read:
        """Check the mask; every member reads the instances through its own `inputs`."""
        masked.check_mask(x, mask)
        return x

    def shapley(self, x: Instances, mask: Mask = None) -> AddedValues:
        """Return the mean of the members' Shapley values."""
        found: list[Tensor] = [m.shapley(x, mask) for m in self.members]  # type: ignore[operator]
        return torch.stack(found).mean(0)

    def interactions(self, x: Instances, mask: Mask = None) -> Tensor:
        """Return the mean of the members' interactions."""
        found: list[Tensor] = [m.interactions(x, mask) for m in self.members]  # type: ignore[operator]
        return torch.stack(found).mean(0)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return torch.stack([m(x, mask) for m in self.each]).mean(0) / self.unit

    def values(self, x: Instances) -> AddedValues:
        return torch.stack([m.added_values(x) for m in self.each]).mean(0) / self.unit

    def empty(self) -> Level:
        return torch.stack([m.constant for m in self.each]).mean(0) / self.unit

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start every member."""
        for member in self.each:
            member.start(unit=unit, label=label, size=size)

    def initial_state(self, sets: int = 1) -> State:
        """Return the members' initial states, concatenated (capacity networks only)."""
        return torch.cat([m.initial_state(sets) for m in self._stepping()], dim=1)

    def step(self, x: Tensor, state: Tensor) -> tuple[Prediction, State]:
        """Read one instance per set; return its mean added value and the new states."""
        members = self._stepping()
        sizes = [m.state_features for m in members]
        check_state(state, x, features=sum(sizes))
        states = torch.split(state, sizes, dim=1)
        steps = [m.step(x, s) for m, s in zip(members, states, strict=True)]
        values, after = zip(*steps, strict=True)
        return torch.stack(values).mean(0), torch.cat(after, dim=1)

    def _stepping(self) -> list[SteppingModel]:
        found = [m for m in self.each if isinstance(m, SteppingModel)]
        if len(found) < len(self.members):
            raise InputError("only capacity networks read a set one instance at a time")
        return found
