r"""Recurrent networks: read instances one after another, decode the last state.

.. math:: z_i = \mathsf{cell}(\mathsf{encoder}(x_i), z_{i-1}), \qquad Y = \mathsf{decoder}(z_n)

The paper's RNN, LSTM and GRU: the counterparts of its capacity networks, with the same parameters.
"""

from __future__ import annotations

from torch import nn

from capnets.models.base import AddedValues, Instances, Mask, Prediction
from capnets.models.prefixes import PrefixModel
from capnets.nn import masked
from capnets.nn.backend import encode_scan_decode
from capnets.nn.cells import Cell
from capnets.nn.encoders import features_read, final_layer

__all__ = ["RecurrentNetwork"]


class RecurrentNetwork(PrefixModel):
    """An encoder, a cell, and a decoder of the state after the last instance."""

    encodes = True

    def __init__(self, *, encoder: nn.Module, cell: Cell, decoder: nn.Sequential) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.cell = cell
        self.decoder = decoder

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        z = encode_scan_decode(x, self.encoder, self.cell)
        prediction: Prediction = self.decoder(masked.last(z, mask))
        return prediction

    def predict_prefixes(self, x: Instances) -> AddedValues:
        # The state after k instances is the last state of the first k: one pass gives all prefixes.
        return encode_scan_decode(x, self.encoder, self.cell, self.decoder)
