r"""Deep Sets (Zaheer et al., NeurIPS 2017, https://arxiv.org/abs/1703.06114).

.. math:: Z = \sum_{x \in X} \varepsilon(x), \qquad Y = \delta(Z)
"""

from __future__ import annotations

from torch import nn

from capnets.models.base import AddedValues, Instances, Mask, Prediction, PrefixModel
from capnets.nn import masked
from capnets.nn.encoders import features_read, final_layer

__all__ = ["DeepSet"]


class DeepSet(PrefixModel):
    """Sum the encoded instances, decode the sum; the order cannot matter."""

    ordered = False

    def __init__(self, *, encoder: nn.Module, decoder: nn.Sequential) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.decoder = decoder

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        prediction: Prediction = self.decoder(masked.total(self.encoder(x), mask))
        return prediction

    def predict_prefixes(self, x: Instances) -> AddedValues:
        # Sums of prefixes are running sums: one pass gives all of them.
        predictions: AddedValues = self.decoder(self.encoder(x).cumsum(1))
        return predictions
