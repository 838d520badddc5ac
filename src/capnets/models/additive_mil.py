r"""Additive MIL (Javed et al., NeurIPS 2022, https://arxiv.org/abs/2206.01794).

.. math:: Y = \sum_i \delta(a_i h_i), \qquad a = \mathrm{softmax}_i\, s(h_i)

with :math:`h_i = \varepsilon(x_i)` and the gated scores :math:`s` of Ilse et al. The summands,
`contributions`, explain a prediction exactly. They are not added values: a new instance changes the
attention, and with it the summands of all others. Added values are differences between prefixes, as
for any network of this kind.
"""

from __future__ import annotations

from torch import Tensor, nn

from capnets.models.base import AddedValues, Instances, Level, Mask, Prediction, SingleModel
from capnets.models.entry import Entry, decoder, encoder
from capnets.models.gated_attention import Gate
from capnets.models.prefixes import differences, prefix_by_prefix
from capnets.nn import masked
from capnets.nn.encoders import features_read, final_layer

__all__ = ["ENTRY", "AdditiveMIL"]


class AdditiveMIL(SingleModel):
    """Decode every instance, scaled by its attention, and sum."""

    ordered = False
    rereads = True

    def __init__(self, *, encoder: nn.Sequential, decoder: nn.Sequential) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.scores = Gate(final_layer(encoder).out_features)
        self.decoder = decoder

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return masked.total(self._summands(x, mask), mask)

    def contributions(self, x: Instances, mask: Mask = None) -> AddedValues:
        """Return the summand of each instance in the unit of the label; 0 for padding."""
        summands = self._summands(self.read(x, mask), mask)
        return masked.blank(self.unit * summands, mask)

    def values(self, x: Instances) -> AddedValues:
        return differences(prefix_by_prefix(self.predict, x), self.empty())

    def empty(self) -> Level:
        return self.unit.new_zeros(self.outputs)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start with every summand at the mean label divided by the mean size."""
        self._start_at(unit, label / unit / size)

    def _summands(self, x: Instances, mask: Mask) -> AddedValues:
        h = self.encoder(x)
        weights = masked.softmax(self.scores(h).squeeze(-1), mask)
        summands: AddedValues = self.decoder(weights[..., None] * h)
        return summands


ENTRY = Entry(
    "Additive MIL",
    "sum of decoded instances, each scaled by its attention",
    lambda spec: AdditiveMIL(encoder=encoder(spec), decoder=decoder(spec)),
)
