r"""A capacity network that is a capacity: no order of the instances changes its prediction.

.. math::
    s_i &= \mathrm{ReLU}(\varepsilon(x_1)) + … + \mathrm{ReLU}(\varepsilon(x_i)) \\
    v_i &= \delta(s_i) - \delta(s_{i-1}) + |b| \\
    Y   &= v_1 + v_2 + … + v_n = \delta(s_n) - \delta(0) + n|b|

Added values are steps of a potential: what they sum to depends on the instances and not on the way
through them. :math:`\delta` grows wherever its input grows, and the sums never shrink, so that
values are never negative and removing *any* instance never raises the prediction. A recurrent
capacity network promises this for the last instance only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from capnets.errors import unknown
from capnets.models.base import (
    AddedValues,
    Instances,
    Mask,
    Prediction,
    State,
    SteppingModel,
)
from capnets.models.capacity import ACTIVATIONS, INVERSES
from capnets.nn import masked
from capnets.nn.encoders import each, features_read
from capnets.nn.monotone import Bend, monotone_mlp

__all__ = ["PotentialNetwork"]

#: How many instances the bends of freshly drawn units are meant for, and what the sums make of each
#: of these instances, roughly, in units.
SIZE, RISE = 10.0, 2.0


class PotentialNetwork(SteppingModel):
    r"""Added values as differences of a monotone function of sums.

    Parameters
    ----------
    encoder
        The paper's :math:`\varepsilon`.
    sizes
        Of the layers of :math:`\delta`: width of the sums, units of each hidden layer, outputs.
    activation
        What makes the weights of :math:`\delta` positive: `abs` or `softplus`; with `identity`
        they have any sign, so that values are signed, and still no order matters.

    Examples
    --------
    >>> from capnets.nn.encoders import mlp
    >>> net = PotentialNetwork(encoder=mlp(3, 8), sizes=(8, 8, 1)).double()
    >>> x = torch.randn(2, 5, 3, dtype=torch.float64)
    >>> torch.allclose(net(x), net(x.flip(1))), bool((net.added_values(x) >= 0).all())
    (True, True)
    """

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
        """What every instance adds, whatever it is."""
        return ACTIVATIONS[self.activation](self.final.bias)

    def values(self, x: Instances) -> AddedValues:
        summands = each(self.encoder, x).relu().transpose(0, 1)
        sums = torch.cat([torch.zeros_like(summands[:1]), summands]).cumsum(0)
        steps: Tensor = self.decoder(sums).diff(dim=0)  # the last bias cancels; it counts instances
        return (steps + self.each_adds).transpose(0, 1)

    def forward(self, x: Instances, mask: Mask = None) -> Prediction:
        """The potential of the whole set, without those of its prefixes; 0 for an empty set."""
        x = self.read(x, mask)
        if x.shape[1] == 0:
            return self.unit.new_zeros(len(x), self.outputs)
        return self.unit * self.predict(x, mask)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        total = masked.total(self.encoder(x).relu(), mask)
        worth = self.decoder(total) - self.decoder(torch.zeros_like(total[:1]))
        size = masked.sizes(x, mask)
        # Rounding may differ between both; nothing is worth exactly nothing.
        prediction: Prediction = worth * (size > 0) + size * self.each_adds
        return prediction

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        after = state + self.encoder(x)[:, 0].relu()
        before_and_after = self.decoder(torch.stack([state, after]))
        return before_and_after[1] - before_and_after[0] + self.each_adds, after

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Begin near the mean, with bends as far out as the sums go.

        Every instance is given what the sums lack, and no more: among sets that are all equally
        large, labels could not tell it from what the sums should have learned.
        """
        rest = label / unit / size - RISE
        if self.activation != "identity":
            rest = rest.clamp_min(0.01)
        super().start(unit=unit, label=INVERSES[self.activation](rest) * unit, size=size)
        with torch.no_grad():
            for layer in self.decoder:
                if isinstance(layer, Bend):
                    layer.at.mul_(size / SIZE)
