r"""Capacity networks (Zopf, AAAI 2022): the paper's equations 7 to 9.

.. math::
    z_i &= \mathsf{cell}(\mathsf{encoder}(x_i),\, z_{i-1}) \\
    v_i &= |\mathsf{decoder}(z_i)| \\
    Y   &= v_1 + v_2 + … + v_n

:math:`v_i` is the *added value* of instance :math:`i` to those before it, in the unit of the label.
It is learned from labels of whole sets alone.

Two parts go beyond the paper. The *aggregation* turns decoded states into values; the paper's is
the sum (see `capnets.models.aggregations`). The *baseline* is the prediction for the empty set; the
paper's is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from capnets.errors import InputError, unknown
from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.aggregations.any import inverse_softplus
from capnets.models.base import (
    AddedValues,
    Instances,
    Level,
    Mask,
    Prediction,
    State,
    SteppingModel,
)
from capnets.nn.backend import encode_scan_decode
from capnets.nn.cells import Cell
from capnets.nn.encoders import features_read, final_layer

__all__ = ["ACTIVATIONS", "CapacityNetwork"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,  # the paper's: appending an instance never lowers the prediction
    "identity": lambda v: v,  # the paper's ablation: values are signed
    "softplus": nn.functional.softplus,  # monotone and smooth, but never exactly 0
}

#: Inverses of the activations for positive values.
INVERSES: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": lambda v: v,
    "identity": lambda v: v,
    "softplus": lambda v: inverse_softplus(v.clamp_min(1e-4)),
}


class CapacityNetwork(SteppingModel):
    r"""Read instances one after another and compute their added values.

    Parameters
    ----------
    encoder
        Maps an instance :math:`x_i` to features. If its first layer is linear, the width of
        instances is checked against it.
    cell
        Maps features and the previous state :math:`z_{i-1}` to the state :math:`z_i`.
    decoder
        Maps a state to one number per output and head of the aggregation; ends in a linear layer.
    activation
        `abs` as in the paper, `identity` (signed values) or `softplus`. With `abs` and `softplus`
        predictions are monotone *under appending*; removing an instance from the middle may still
        raise the prediction.
    aggregation
        `sum` as in the paper, `mean`, `mean+sum`, `any` or `last`. All but `sum` need
        `activation="identity"`.
    baseline
        Prediction for the empty set: `none` (0) or `learned`, which needs
        `activation="identity"`.

    Examples
    --------
    >>> from capnets.nn.cells import GRUCell
    >>> from capnets.nn.encoders import mlp
    >>> net = CapacityNetwork(encoder=mlp(3, 8), cell=GRUCell(8, 4), decoder=mlp(4, 1))
    >>> x = torch.randn(2, 5, 3)
    >>> torch.allclose(net(x), net.added_values(x).sum(1))
    True
    """

    encodes = True

    def __init__(
        self,
        *,
        encoder: nn.Module,
        cell: Cell,
        decoder: nn.Sequential,
        activation: str = "abs",
        aggregation: str = "sum",
        baseline: str = "none",
    ) -> None:
        check_parts(activation, aggregation, baseline)
        kind, width = AGGREGATIONS[aggregation], final_layer(decoder).out_features
        if width % kind.heads:
            raise InputError(
                f"aggregation {aggregation!r} needs {kind.heads} numbers per output, but the "
                f"decoder ends in {width}"
            )
        outputs = width // kind.heads
        super().__init__(in_features=features_read(encoder), outputs=outputs)
        self.encoder = encoder
        self.cell = cell
        self.decoder = decoder
        self.aggregation = kind(outputs, learned=baseline == "learned")
        self.activation = activation
        self.probability = kind.probability
        self.ordered, self.positional = cell.context, cell.ordered
        self.state_features = cell.state_features + kind.memory * outputs

    def values(self, x: Instances) -> AddedValues:
        return self.aggregation.values(self._decoded(x))

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return self.aggregation.predict(self._decoded(x), mask)

    def _decoded(self, x: Instances) -> Tensor:
        r"""Return :math:`|\mathsf{decoder}(z_i)|` for all instances, with this activation.

        The backend computes the states :math:`z_i`, and fuses the three parts where it can.
        """
        decoded = encode_scan_decode(x, self.encoder, self.cell, self.decoder)
        return ACTIVATIONS[self.activation](decoded)

    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        cut = self.cell.state_features
        z, memory = self.cell(self.encoder(x), state[:, :cut])
        decoded = ACTIVATIONS[self.activation](self.decoder(z[:, 0]))
        value, sums = self.aggregation.next_value(decoded, state[:, cut:])
        return value, torch.cat([memory, sums], dim=1)

    def empty(self) -> Level:
        return self.aggregation.empty(self.unit)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start near the mean label; the aggregation sets the last layer of the decoder."""
        self.cell.start(size=size)
        if self.probability:
            unit = torch.ones_like(unit)
        with torch.no_grad():
            self.unit.copy_(unit)
            final = self.final
            level = (label / unit).to(final.bias)
            self.aggregation.start(final.weight, final.bias, level=level, size=size)
            final.bias.copy_(INVERSES[self.activation](final.bias))


def check_parts(activation: str, aggregation: str, baseline: str) -> None:
    """Raise unless the parts exist and fit together."""
    for what, name, choices in (
        ("activation", activation, ACTIVATIONS),
        ("aggregation", aggregation, AGGREGATIONS),
        ("baseline", baseline, BASELINES),
    ):
        if name not in choices:
            raise unknown(what, name, choices)
    if activation != "identity" and (AGGREGATIONS[aggregation].signed or baseline == "learned"):
        part = "a learned baseline" if baseline == "learned" else f"aggregation {aggregation!r}"
        raise InputError(
            f"{part} needs activation='identity', not {activation!r}: "
            "the decoder's numbers must be free to have either sign"
        )
