"""What every set network promises, and what an additive one adds to it.

A set network gives a prediction per set. An *additive* one gives one added value per instance, and
its prediction is their sum: it implements only the values, the sum is written here, once. From this
follow three identities which `capnets.checks` states for every additive network: the values sum to
the prediction; the values of a prefix are the prefix of the values; f(first k) - f(first k-1) is
v_k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.nn import masked
from capnets.nn.cells import check_state
from capnets.nn.encoders import final_layer

__all__ = ["AdditiveModel", "SetModel", "SteppingModel"]

Instances = Float[Tensor, "sets size *features"]
Mask = Bool[Tensor, "sets size"] | None
Prediction = Float[Tensor, "sets outputs"]
Instance = Float[Tensor, "sets *features"]  # one of each set
AddedValues = Float[Tensor, "sets size outputs"]
State = Float[Tensor, "sets state"]
Read = Float[Tensor, "sets size *read"]  # what `inputs` made of the instances

#: How many numbers (instances and pairs of them) the prefixes of one pass may have.
PREFIX_NUMBERS = 2**24


class SetModel(nn.Module, ABC):
    """A network from sets of instances to labels.

    Parameters
    ----------
    in_features
        Features of an instance behind `inputs`; None when they are the encoder's own business.
    outputs
        How many labels a set has.

    Attributes
    ----------
    additive
        Whether the prediction is by construction the sum of added values.
    ordered
        Whether the order of the instances can change the prediction.
    idle
        Patterns of the names of parameters that cannot change the prediction, such as a bias in
        front of a softmax; they are there because the published network has and counts them.
    inputs
        What an instance passes through first: nothing, standardisation, or a network that reads
        pictures.
    unit
        The amount of label (per output) that the network's own number 1 stands for. Set by `start`;
        a buffer and not a parameter, so that it is saved with the weights but never trained.
    decoder
        What ends in the prediction, where a network has one; see `final`.
    """

    additive: bool = False
    ordered: bool = True
    idle: tuple[str, ...] = ()
    unit: Tensor
    decoder: nn.Sequential

    def __init__(self, *, in_features: int | None, outputs: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.inputs: nn.Module = nn.Identity()
        self.register_buffer("unit", torch.ones(outputs))

    @property
    def outputs(self) -> int:
        """How many labels a set has."""
        return len(self.unit)

    @abstractmethod
    def predict(self, x: Instances, mask: Mask) -> Prediction:
        """The prediction in units, for instances that passed `inputs`."""

    @property
    def final(self) -> nn.Linear:
        """The layer whose bias decides where training begins: the last of the decoder."""
        return final_layer(self.decoder)

    def forward(self, x: Instances, mask: Mask = None) -> Prediction:
        """One prediction per set and output."""
        self.check_some(x, mask)
        return self.unit * self.predict(self.read(x, mask), mask)

    def added_values(self, x: Instances, mask: Mask = None) -> AddedValues:
        """What each instance adds to those before it: differences of the predictions of prefixes.

        The prediction of no instances counts as 0. Behind the end of a set values are 0.
        """
        self.check_some(x, mask)
        prefixes = self.unit * self.predict_prefixes(self.read(x, mask), mask)
        return masked.blank(prefixes.diff(dim=1, prepend=torch.zeros_like(prefixes[:, :1])), mask)

    def predict_prefixes(self, x: Instances, mask: Mask) -> AddedValues:
        """The predictions of the first, the first two, … instances.

        One batched pass over all prefixes of all sets; several where they are too many for memory.
        """
        sets, size = x.shape[:2]
        prefix = torch.ones(size, size, dtype=torch.bool, device=x.device).tril()
        at_once = max(1, PREFIX_NUMBERS // (size * (size + x.shape[2:].numel())))
        predictions = [
            self.predict(x[rows // size], prefix[rows % size])
            for rows in torch.split(torch.arange(sets * size, device=x.device), at_once)
        ]
        return torch.cat(predictions).view(sets, size, self.outputs)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Begin training near the mean.

        Parameters
        ----------
        unit
            What the network's number 1 shall stand for, per output.
        label
            The mean label, per output.
        size
            The mean number of instances in a set.
        """
        with torch.no_grad():
            self.unit.copy_(unit)
            self.final.bias.copy_(label / unit)

    def read(self, x: Instances, mask: Mask) -> Read:
        """Check what was given and pass it through `inputs`."""
        masked.check_mask(x, mask)
        x = self.inputs(x)
        if self.in_features is not None and (x.ndim != 3 or x.shape[2] != self.in_features):
            raise InputError(
                f"instances have shape {tuple(x.shape[2:])}, but this network was built for "
                f"{self.in_features} features: x must be sets x instances x {self.in_features}"
            )
        return x

    def check_some(self, x: Instances, mask: Mask) -> None:
        """Refuse an empty set: only an additive network knows what nothing is worth."""
        empty = x.shape[1] == 0 or (mask is not None and not bool(mask[:, 0].all()))
        if empty and not torch.onnx.is_in_onnx_export():
            raise InputError(
                f"{type(self).__name__} cannot predict a set without instances; remove empty sets, "
                "or use a capacity network, for which an empty set is worth 0"
            )


class AdditiveModel(SetModel):
    """A network whose prediction is the sum of its added values."""

    additive = True

    @abstractmethod
    def values(self, x: Instances) -> AddedValues:
        """The added values in units; what stands behind the end of a set is not used."""

    def added_values(self, x: Instances, mask: Mask = None) -> AddedValues:
        """What each instance adds to those before it; 0 behind the end of a set."""
        x = self.read(x, mask)
        if x.shape[1] == 0:  # cells refuse to read nothing
            return self.unit.new_zeros(len(x), 0, self.outputs)
        return masked.blank(self.unit * self.values(x), mask)

    def forward(self, x: Instances, mask: Mask = None) -> Prediction:
        """The sum of the added values; 0 for an empty set."""
        return self.added_values(x, mask).sum(1)

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return masked.total(self.values(x), mask)


class SteppingModel(AdditiveModel):
    """An additive network that can also read a set one instance at a time.

    Attributes
    ----------
    state_features
        How many numbers it remembers between two instances; they begin at 0.
    """

    state_features: int

    def initial_state(self, sets: int = 1) -> State:
        """The state before the first instance."""
        return self.unit.new_zeros(sets, self.state_features)

    def step(self, x: Instance, state: Tensor) -> tuple[Prediction, State]:
        """One instance per set in; its added value and the new state out."""
        read = self.read(x[:, None], None)
        check_state(state, read, features=self.state_features)
        value, after = self.next_value(read, state)
        return self.unit * value, after

    @abstractmethod
    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        """The same in units, for one instance per set that passed `inputs`."""
