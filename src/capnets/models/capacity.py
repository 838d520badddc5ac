r"""Capacity networks (Zopf, AAAI 2022): the paper's equations 7 to 9.

.. math::
    z_i &= \mathsf{cell}(\mathsf{encoder}(x_i),\, z_{i-1}) \\
    v_i &= |\mathsf{decoder}(z_i)| \\
    Y   &= v_1 + v_2 + … + v_n

:math:`v_i` is the *added value* of instance :math:`i` to those before it, in the unit of the label.
It is learned from labels of whole sets alone.
"""

from __future__ import annotations

from collections.abc import Callable

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
from capnets.nn import masked
from capnets.nn.cells import Cell
from capnets.nn.encoders import features_read, final_layer
from capnets.nn.fused import through

__all__ = ["ACTIVATIONS", "CapacityNetwork"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,  # the paper's: appending an instance never lowers the prediction
    "identity": lambda v: v,  # the paper's ablation: values are signed
    "softplus": nn.functional.softplus,  # monotone and smooth, but never exactly 0
}

#: For each activation the number that it maps to a given positive value.
INVERSES: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": lambda v: v,
    "identity": lambda v: v,
    "softplus": lambda v: _inverse_softplus(v.clamp_min(1e-4)),
}


class CapacityNetwork(SteppingModel):
    r"""A network that reads instances one after another and emits what each of them adds.

    Parameters
    ----------
    encoder
        Instance :math:`x_i` to features. Where it begins with a linear layer, the width of
        instances is checked against that.
    cell
        Features and the state before to the state :math:`z_i`.
    decoder
        State to value (or one value per output); its last layer is linear.
    activation
        `abs` as in the paper, `identity` (signed values) or `softplus`. With `abs` and `softplus`
        predictions are monotone *under appending*; removing an instance from the middle may still
        raise the prediction.

    Examples
    --------
    >>> from capnets.nn.cells import GRUCell
    >>> from capnets.nn.encoders import mlp
    >>> net = CapacityNetwork(encoder=mlp(3, 8), cell=GRUCell(8, 4), decoder=mlp(4, 1))
    >>> x = torch.randn(2, 5, 3)
    >>> torch.allclose(net(x), net.added_values(x).sum(1))
    True
    """

    def __init__(
        self, *, encoder: nn.Module, cell: Cell, decoder: nn.Sequential, activation: str = "abs"
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        super().__init__(
            in_features=features_read(encoder), outputs=final_layer(decoder).out_features
        )
        self.encoder = encoder
        self.cell = cell
        self.decoder = decoder
        self.activation = activation
        self.state_features = cell.state_features

    def values(self, x: Instances) -> AddedValues:
        decoded = through(x, self.encoder, self.cell, self.decoder)
        return ACTIVATIONS[self.activation](decoded)

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        z, state = self.cell(self.encoder(x), state)
        return ACTIVATIONS[self.activation](self.decoder(z[:, 0])), state

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Begin with every value at the mean label divided by the mean size."""
        self.cell.start(size=size)
        self._start_at(unit, INVERSES[self.activation](label / unit / size))

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return masked.total(self.values(x), mask)

    def empty(self) -> Level:
        return torch.zeros_like(self.unit)


def _inverse_softplus(v: Tensor) -> Tensor:
    # log(exp(v) - 1) in a form that does not overflow where labels are far from 0.
    return v + (-torch.expm1(-v)).log()
