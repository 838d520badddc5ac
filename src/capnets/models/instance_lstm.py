r"""Instance-Space LSTM with skip connections (Early et al., NeurIPS 2022, arXiv:2205.15367).

.. math:: z_i = \mathsf{LSTM}(e_i, z_{i-1}), \qquad v_i = \delta([z_i, e_i]), \qquad Y = \sum_i v_i

with :math:`e_i = \varepsilon(x_i)`. Without the skip connection it is C-LSTM with the activation
`identity`: values may be negative.
"""

from __future__ import annotations

import torch
from torch import nn

from capnets.models.base import AddedValues, AdditiveModel, Instances
from capnets.models.entry import Entry, decoder, encoder
from capnets.nn.cells import Cell, LSTMCell
from capnets.nn.encoders import features_read, final_layer

__all__ = ["ENTRY", "InstanceLSTM"]


class InstanceLSTM(AdditiveModel):
    """Decode every state beside its instance; the values are signed."""

    def __init__(self, *, encoder: nn.Sequential, cell: Cell, decoder: nn.Sequential) -> None:
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.cell = cell
        self.decoder = decoder

    def values(self, x: Instances) -> AddedValues:
        e = self.encoder(x)
        values: AddedValues = self.decoder(torch.cat([self.cell(e)[0], e], dim=2))
        return values


ENTRY = Entry(
    "Instance LSTM",
    "sum of decoded LSTM states and instances",
    lambda spec: InstanceLSTM(
        encoder=encoder(spec),
        cell=LSTMCell(spec.hidden, spec.hidden),
        decoder=decoder(spec, in_features=2 * spec.hidden),
    ),
)
