"""Base classes of the set networks.

Every set network predicts one row of labels per set and assigns an *added value* to each instance.
The added values of a set sum to its prediction minus the *baseline*, the prediction for the empty
set. A base class is abstract or final: no method that is implemented is overridden. The
last two are in `capnets.models.prefixes`.

========================  ============================  =========================================
derive from               implement                     the class provides
========================  ============================  =========================================
`AdditiveModel`           `values`                      prediction = baseline + sum of the values
`SteppingModel`           `values`, `predict`,          reading one instance at a time
                          `next_value`, `empty`,
                          `start`
`WholeSetModel`           `predict`                     values = differences between prefixes
`PrefixModel`             `predict`,                    the same, from one pass over all prefixes
                          `predict_prefixes`
========================  ============================  =========================================

An additive network satisfies three identities, which `capnets.checks` tests for every network: the
values sum to the prediction minus the baseline; the values of a prefix are the prefix of the
values; f(first k) - f(first k-1) = v_k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.nn import masked
from capnets.nn.cells import check_state
from capnets.nn.covariates import CovariateBaseline
from capnets.nn.encoders import final_layer

__all__ = [
    "AdditiveModel",
    "SetModel",
    "SingleModel",
    "SteppingModel",
]

Instances = Float[Tensor, "sets size *features"]
Mask = Bool[Tensor, "sets size"] | None
Prediction = Float[Tensor, "sets outputs"]
Instance = Float[Tensor, "sets *features"]  # one of each set
AddedValues = Float[Tensor, "sets size outputs"]
State = Float[Tensor, "sets state"]
Read = Float[Tensor, "sets size *read"]  # instances behind `inputs`
Level = Float[Tensor, " outputs"]  # one number per output


class SetModel(nn.Module, ABC):
    """A network from sets of instances to labels.

    Parameters
    ----------
    in_features
        Features of an instance behind `inputs`. None if the encoder does not declare them.
    outputs
        Number of labels per set.

    Attributes
    ----------
    additive
        Whether every prediction is the baseline plus the sum of the added values, also for the
        empty set.
    ordered
        Whether the order of the instances can change the prediction.
    positional
        Whether an added value can depend on the number of instances before. Labels then determine
        only the sum of the values if all training sets have one size.
    pools
        Whether added values compare pooled statistics of prefixes. On data with known values, such
        values are often far off, however well the network predicts whole sets.
    rereads
        Whether added values need one prediction per prefix instead of one pass.
    steps
        Whether the network can read a set one instance at a time: the methods `initial_state` and
        `step`.
    closed_form
        Whether Shapley values and interactions have a closed form: the methods `shapley(x, mask)`
        and `interactions(x, mask)`.
    probability
        Whether predictions are probabilities. Labels must then lie in [0, 1], and `unit` stays 1.
    smooth
        Whether predictions have a gradient with respect to instances. False for trees, where it is
        0.
    idle
        Name patterns of parameters that cannot change the prediction, such as a bias in front of a
        softmax. They are kept because the published network counts them.
    encodes
        Whether the module `encoder` alone reads the output of `inputs`, instance by instance.
    last
        Name of the submodule that ends in the prediction; see `final`.
    inputs
        First module that an instance passes: identity, standardization or an image network.
    unit
        Amount of the label, per output, that equals 1 inside the network. Set by `start`. A buffer,
        so that it is saved with the weights but never trained.
    covariate_baseline
        The part of the baseline that depends on covariates; None for a network without them.
    """

    additive: bool = False
    ordered: bool = True
    positional: bool = True
    pools: bool = False
    rereads: bool = False
    steps: bool = False
    closed_form: bool = False
    probability: bool = False
    smooth: bool = True
    idle: tuple[str, ...] = ()
    encodes: bool = False
    last: str = "decoder"
    unit: Tensor

    def __init__(self, *, in_features: int | None, outputs: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.inputs: nn.Module = nn.Identity()
        self.covariate_baseline: CovariateBaseline | None = None
        self.register_buffer("unit", torch.ones(outputs))

    @property
    def outputs(self) -> int:
        """Number of labels per set."""
        return len(self.unit)

    @property
    def features_in(self) -> int | None:
        """Features of an instance in front of `inputs`; None if they are not declared."""
        features: int | None = getattr(self.inputs, "in_features", self.in_features)
        return features

    @abstractmethod
    def predict(self, x: Instances, mask: Mask) -> Prediction:
        """Compute predictions in units, for instances that passed `inputs`."""

    @abstractmethod
    def values(self, x: Instances) -> AddedValues:
        """Compute added values in units, for instances that passed `inputs`.

        Values of padding are ignored; padding comes after all instances.
        """

    @abstractmethod
    def empty(self) -> Level:
        """Return the prediction for the empty set, in units."""

    @abstractmethod
    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Initialize the network such that it predicts near the mean label.

        Parameters
        ----------
        unit
            Amount of the label that the number 1 inside the network stands for, per output.
        label
            Mean label, per output.
        size
            Mean number of instances in a set.
        """

    @property
    def baseline(self) -> Level:
        """Prediction for the empty set, from which added values are counted.

        0 unless the network learns a baseline. Networks that are not additive cannot read an empty
        set; their values are counted from 0, too.
        """
        if self.covariates:
            raise InputError("the baseline depends on covariates: there is one per set, not one")
        return self.constant

    @property
    def constant(self) -> Level:
        """The part of the baseline that is the same for all sets."""
        return self.unit * self.empty()

    @property
    @abstractmethod
    def covariates(self) -> int:
        """Number of covariates, the last features of every instance."""

    @abstractmethod
    def baselines(self, x: Instances) -> Prediction:
        """Return the prediction for the empty set, for each set of a batch and its covariates."""

    @abstractmethod
    def read(self, x: Instances, mask: Mask) -> Read:
        """Check instances and mask, and apply `inputs`."""

    @property
    def final(self) -> nn.Linear:
        """Last linear layer. Its bias decides where training begins."""
        part = getattr(self, self.last)
        if isinstance(part, SetModel):
            return part.final
        return part if isinstance(part, nn.Linear) else final_layer(part)

    def forward(self, x: Instances, mask: Mask = None) -> Prediction:
        """Return one prediction per set and output; the baseline for an empty set."""
        read = self._checked(x, mask)
        if x.shape[1] == 0:  # cells raise an error for empty sets
            return self.baselines(x)
        found = self.predict(read, mask)
        if self.covariate_baseline is not None:
            found = found + self.covariate_baseline(x)
        return self.unit * found

    def added_values(self, x: Instances, mask: Mask = None) -> AddedValues:
        """Return the added value of each instance; 0 for padding."""
        x = self._checked(x, mask)
        if x.shape[1] == 0:
            return self.unit.new_zeros(len(x), 0, self.outputs)
        return masked.blank(self.unit * self.values(x), mask)

    def check_labels(self, y: Any, *, logits: bool = False) -> None:
        """Raise if the network cannot predict such labels, or not with a loss on logits."""
        if not self.probability:
            return
        if logits:
            raise InputError(
                "this network predicts probabilities, but the loss expects logits: "
                "use the loss 'bernoulli'"
            )
        y = torch.as_tensor(y).flatten()
        outside = y[~((y >= 0) & (y <= 1))]
        if len(outside):
            raise InputError(
                f"label {float(outside[0]):g} is outside [0, 1], but this network predicts "
                "probabilities: use another aggregation, or rescale the labels"
            )

    def check_some(self, x: Instances, mask: Mask) -> None:
        """Refuse empty sets, which only an additive network can predict."""
        empty = x.shape[1] == 0 or (mask is not None and not bool(mask[:, 0].all()))
        if empty and not torch.onnx.is_in_onnx_export():
            raise InputError(
                f"{type(self).__name__} cannot predict a set without instances; remove empty sets, "
                "or use a capacity network, which predicts its baseline for an empty set"
            )

    def _checked(self, x: Instances, mask: Mask) -> Read:
        if not self.additive:
            self.check_some(x, mask)
        if self.covariate_baseline is not None:
            x = self.covariate_baseline.partly_hidden(x)
        return self.read(x, mask)

    @torch.no_grad()
    def _start_at(self, unit: Tensor, bias: Tensor) -> None:
        self.unit.copy_(unit)
        self.final.bias.copy_(bias)


class SingleModel(SetModel):
    """A network that reads the instances itself, unlike an average of networks."""

    @property
    def covariates(self) -> int:
        return 0 if self.covariate_baseline is None else self.covariate_baseline.covariates

    def baselines(self, x: Instances) -> Prediction:
        if self.covariate_baseline is None:
            return self.baseline.expand(len(x), -1)
        if x.shape[1] == 0:
            raise InputError("an empty set needs a row of padding that ends in its covariates")
        level: Tensor = self.covariate_baseline(x)
        return self.unit * (self.empty() + level)

    def read(self, x: Instances, mask: Mask) -> Read:
        masked.check_mask(x, mask)
        x = self.inputs(x)
        if self.in_features is not None and (x.ndim != 3 or x.shape[2] != self.in_features):
            raise InputError(
                f"instances have shape {tuple(x.shape[2:])}, but this network was built for "
                f"{self.in_features} features: x must be sets x instances x {self.in_features}"
            )
        return x


class AdditiveModel(SingleModel):
    """A network whose prediction is the sum of its added values; the baseline is 0."""

    additive = True

    def predict(self, x: Instances, mask: Mask) -> Prediction:
        return masked.total(self.values(x), mask)

    def empty(self) -> Level:
        return torch.zeros_like(self.unit)

    def start(self, *, unit: Tensor, label: Tensor, size: float) -> None:
        """Start with every value at the mean label divided by the mean size."""
        self._start_at(unit, label / unit / size)


class SteppingModel(SingleModel):
    """An additive network that can also read a set one instance at a time.

    Attributes
    ----------
    state_features
        Numbers remembered between two instances; they begin at 0.
    """

    additive = True
    steps = True
    state_features: int

    def initial_state(self, sets: int = 1) -> State:
        """Return the state before the first instance."""
        return self.unit.new_zeros(sets, self.state_features)

    def step(self, x: Instance, state: Tensor) -> tuple[Prediction, State]:
        """Read one instance per set; return its added value and the new state."""
        read = self.read(x[:, None], None)
        check_state(state, read, features=self.state_features)
        value, after = self.next_value(read, state)
        return self.unit * value, after

    @abstractmethod
    def next_value(self, x: Instances, state: State) -> tuple[Prediction, State]:
        """Compute the same in units, for one instance per set that passed `inputs`."""
