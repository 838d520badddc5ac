r"""C-Potential: a capacity network whose prediction does not depend on the order.

.. math::
    s_i &= \mathrm{ReLU}(\varepsilon(x_1)) + … + \mathrm{ReLU}(\varepsilon(x_i)) \\
    v_i &= \delta(s_i) - \delta(s_{i-1}) + |b| \\
    Y   &= v_1 + v_2 + … + v_n = \delta(s_n) - \delta(0) + n|b|

Added values are differences of a potential, so their sum depends on the instances and not on their
order. :math:`\delta` is monotone and the sums never shrink: values are never negative, and removing
*any* instance never raises the prediction. A recurrent capacity network guarantees this for the
last instance only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from capnets.errors import unknown
from capnets.models.base import (
    AddedValues,
    Instances,
    Level,
    Mask,
    Prediction,
    State,
    SteppingModel,
)
from capnets.models.capacity import ACTIVATIONS, INVERSES
from capnets.models.entry import Entry
from capnets.models.entry import encoder as make_encoder
from capnets.nn import masked
from capnets.nn.encoders import each, features_read
from capnets.nn.monotone import Bend, monotone_mlp

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY", "PotentialNetwork"]

#: Set size that the initial bends are made for, and the value that the initial sums give to each
#: instance of such a set, roughly, in units.
SIZE, RISE = 10.0, 2.0


class PotentialNetwork(SteppingModel):
    r"""Compute added values as differences of a monotone function of sums.

    Parameters
    ----------
    encoder
        The paper's :math:`\varepsilon`.
    sizes
        Layer sizes of :math:`\delta`: width of the sums, units of each hidden layer, outputs.
    activation
        Makes the weights of :math:`\delta` positive: `abs` or `softplus`. With `identity` weights
        and values are signed, and the order still does not matter.

    Examples
    --------
    >>> from capnets.nn.encoders import mlp
    >>> net = PotentialNetwork(encoder=mlp(3, 8), sizes=(8, 8, 1)).double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net(x.flip(1))), bool((net.added_values(x) >= 0).all())
    (True, True)
    """

    encodes = True
    ordered = False

    def __init__(
        self, *, encoder: nn.Module, sizes: tuple[int, ...], activation: str = "abs"
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        super().__init__(in_features=features_read(encoder), outputs=sizes[-1])
        self.encoder = encoder
        self.activation = activation
        self.decoder = monotone_mlp(
            *sizes, positive=ACTIVATIONS[activation], inverse=INVERSES[activation]
        )
        self.state_features = sizes[0]

    @property
    def each_adds(self) -> Tensor:
        """Constant part of every added value."""
        return ACTIVATIONS[self.activation](self.final.bias)

    def values(self, x: Instances) -> AddedValues:
        summands = each(self.encoder, x).relu().transpose(0, 1)
        sums = torch.cat([torch.zeros_like(summands[:1]), summands]).cumsum(0)
        steps: Tensor = self.decoder(sums).diff(dim=0)  # the last bias cancels
        return (steps + self.each_adds).transpose(0, 1)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        total = masked.total(self.encoder(x).relu(), mask)
        worth = self.decoder(total) - self.decoder(torch.zeros_like(total[:1]))
        size = masked.total(x.new_ones(*x.shape[:2], 1), mask)
        # Both potentials may be rounded differently; the empty set is worth exactly 0.
        prediction: Prediction = worth * (size > 0) + size * self.each_adds
        return prediction

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        after = state + self.encoder(x)[:, 0].relu()
        before_and_after = self.decoder(torch.stack([state, after]))
        return before_and_after[1] - before_and_after[0] + self.each_adds, after

    def empty(self) -> Level:
        return torch.zeros_like(self.unit)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start near the mean label, with bends that cover the range of the sums.

        The constant part of a value only fills the gap between the sums and the mean: if all sets
        have the same size, labels cannot distinguish it from what the sums should learn.
        """
        rest = label / unit / size - RISE
        if self.activation != "identity":
            rest = rest.clamp_min(0.01)
        self._start_at(unit, INVERSES[self.activation](rest))
        with torch.no_grad():
            for layer in self.decoder:
                if isinstance(layer, Bend):
                    layer.at.mul_(size / SIZE)


def _make(spec: ModelSpec) -> PotentialNetwork:
    # One unit per sum and one per bend of it, then units that may join several of them.
    inner = (2 * spec.hidden, *[spec.hidden] * (spec.layers - 2))
    return PotentialNetwork(
        encoder=make_encoder(spec),
        sizes=(spec.hidden, *inner, spec.outputs),
        activation=spec.activation,
    )


ENTRY = Entry("C-Potential", "capacity network without order: a monotone set function", _make)
