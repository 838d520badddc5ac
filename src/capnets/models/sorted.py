r"""Sort the instances of a set before a network reads them.

.. math:: Y = f(x_{\pi(1)}, …, x_{\pi(n)}), \qquad g(x_{\pi(1)}) \le … \le g(x_{\pi(n)})

The score :math:`g` determines the order, so the prediction depends on the set alone. It is no
longer additive in the order given, because an instance that comes later may be read earlier. Added
values are differences between the predictions of prefixes, as for any network that is not additive.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor

from capnets.errors import InputError
from capnets.models.base import (
    AddedValues,
    Instances,
    Level,
    Mask,
    Prediction,
    SetModel,
    SingleModel,
)
from capnets.models.prefixes import differences, prefix_by_prefix
from capnets.nn.backend import is_transformed

__all__ = ["BY_WORTH", "ReorderedNetwork", "SortedNetwork"]

Order = Int[Tensor, "sets size"]

BY_WORTH = "worth"


class ReorderedNetwork(SingleModel):
    """Pass instances to another network in an order that does not depend on the given one."""

    ordered = False
    rereads = True
    last = "network"

    def __init__(self, network: SetModel) -> None:
        super().__init__(in_features=network.in_features, outputs=network.outputs)
        self.network = network
        self.probability = network.probability

    @abstractmethod
    def arrange(self, x: Instances, mask: Mask) -> Instances:
        """Return the instances as the network reads them; padding stays at the end."""

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return self.network.predict(self.arrange(x, mask), mask)

    def values(self, x: Instances) -> AddedValues:
        return differences(prefix_by_prefix(self.predict, x), self.empty())

    def empty(self) -> Level:
        return self.network.empty()

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start the network."""
        self.network.start(unit=unit, label=label, size=size)
        self.unit.copy_(self.network.unit)


class SortedNetwork(ReorderedNetwork):
    """Sort instances and pass them to a network.

    Parameters
    ----------
    network
        The network that reads the sorted instances.
    by
        Index of a feature (ascending), or `worth`: the network's prediction for the instance alone
        (descending), a score that is learned with the network. Ties are broken by all features,
        first to last, so that only identical instances are interchangeable.

    Examples
    --------
    >>> from capnets.models import build
    >>> net = SortedNetwork(build("c-gru", in_features=3), by="worth").double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net(x.flip(1)))
    True
    """

    def __init__(self, network: SetModel, *, by: str | int) -> None:
        super().__init__(network)
        if by != BY_WORTH and not isinstance(by, int):
            raise InputError(
                f"instances are sorted by {BY_WORTH!r} or by the index of a feature, not by {by!r}"
            )
        if isinstance(by, int) and not 0 <= by < (network.in_features or by + 1):
            raise InputError(f"feature {by} does not exist: there are {network.in_features}")
        if not network.ordered:
            raise InputError(
                "this network does not depend on the order, so sorting is not supported"
            )
        self.by = by

    def arrange(self, x: Instances, mask: Mask) -> Instances:
        sets = torch.arange(len(x), device=x.device)[:, None]
        return x[sets, self.reading(x, mask)]

    @torch.no_grad()
    def reading(self, x: Instances, mask: Mask) -> Order:
        """Return the order in which instances are read."""
        scores = self.scores(x)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.inf)  # padding stays at the end
        if is_transformed():  # no branch may depend on the data then
            return _by_all(scores, x)
        ascending, order = scores.sort(dim=1, stable=True)
        ties = ascending[:, 1:] == ascending[:, :-1]
        tied = (ties if mask is None else ties & mask[:, 1:]).any(1)
        if bool(tied.any()):  # rare if features are measured
            order[tied] = _by_all(scores[tied], x[tied])
        return order

    @torch.no_grad()
    def scores(self, x: Instances) -> Tensor:
        """Return one number per instance; the smallest is read first."""
        if isinstance(self.by, int):
            return x[..., self.by]
        alone = self.network.predict(x.flatten(0, 1)[:, None], None)
        return -alone.sum(1).view(x.shape[:2])


def _by_all(scores: Tensor, x: Instances) -> Order:
    """Sort by scores, then by the first feature, and so on to the last."""
    keys = [scores, *x.flatten(2).unbind(2)]
    order = keys.pop().argsort(dim=1, stable=True)
    for key in reversed(keys):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    return order
