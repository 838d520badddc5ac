r"""Any network, reading the instances of a set in an order of their own.

.. math:: Y = f(x_{\pi(1)}, …, x_{\pi(n)}), \qquad g(x_{\pi(1)}) \le … \le g(x_{\pi(n)})

A set has one order by the score :math:`g` however it is given, so that the prediction depends on
the set alone. It is no longer the sum of values in the order given: an instance that comes later
may be read earlier. What an instance adds is the difference between the predictions of two
prefixes, as for any network that is not additive.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.models.base import Instances, Mask, Prediction, SetModel
from capnets.nn.derivatives import are_transformed

__all__ = ["BY_WORTH", "SortedNetwork"]

Order = Int[Tensor, "sets size"]

BY_WORTH = "worth"


class SortedNetwork(SetModel):
    """A network that sorts instances before it reads them.

    Parameters
    ----------
    network
        What reads them.
    by
        The number of a feature, smallest first, or `worth`: what the network predicts for the
        instance alone, largest first, a score that is learned with everything else. Instances with
        the same score are sorted by all their features, the first one first: which of two equal
        instances is which cannot matter.

    Examples
    --------
    >>> from capnets.models import build
    >>> net = SortedNetwork(build("c-gru", in_features=3), by="worth").double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net(x.flip(1)))
    True
    """

    ordered = False

    def __init__(self, network: SetModel, *, by: str | int) -> None:
        super().__init__(in_features=network.in_features, outputs=network.outputs)
        if by != BY_WORTH and not isinstance(by, int):
            raise InputError(f"instances are sorted by {BY_WORTH!r} or a feature's number: {by!r}")
        if isinstance(by, int) and not 0 <= by < (network.in_features or by + 1):
            raise InputError(f"feature {by} does not exist: there are {network.in_features}")
        if not network.ordered:
            raise InputError("no order changes what this network predicts; do not sort for it")
        self.network = network
        self.by = by

    @property
    def final(self) -> nn.Linear:
        """That of the network."""
        return self.network.final

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """As the network does."""
        self.network.start(unit=unit, label=label, size=size)
        self.unit.copy_(unit)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        sets = torch.arange(len(x), device=x.device)[:, None]
        return self.network.predict(x[sets, self.reading(x, mask)], mask)

    @torch.no_grad()
    def reading(self, x: Instances, mask: Mask) -> Order:
        """The order in which instances are read."""
        scores = self.scores(x)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.inf)  # padding stays behind
        if are_transformed():  # then no branch may depend on what is in a set
            return _by_all(scores, x)
        ascending, order = scores.sort(dim=1, stable=True)
        ties = ascending[:, 1:] == ascending[:, :-1]
        tied = (ties if mask is None else ties & mask[:, 1:]).any(1)
        if bool(tied.any()):  # hardly ever where features are measured
            order[tied] = _by_all(scores[tied], x[tied])
        return order

    @torch.no_grad()  # an order has no slope
    def scores(self, x: Instances) -> Tensor:
        """One number per instance; the smallest is read first."""
        if isinstance(self.by, int):
            return x[..., self.by]
        alone = self.network.predict(x.flatten(0, 1)[:, None], None)
        return -alone.sum(1).view(x.shape[:2])


def _by_all(scores: Tensor, x: Instances) -> Order:
    """By scores; where they are equal by the first feature, and so on until the last."""
    keys = [scores, *x.flatten(2).unbind(2)]
    order = keys.pop().argsort(dim=1, stable=True)
    for key in reversed(keys):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    return order
