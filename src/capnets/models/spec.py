"""Settings of a network, recorded with every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from capnets.errors import InputError, unknown
from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.base import SetModel
from capnets.models.capacity import ACTIVATIONS, check_parts
from capnets.models.ensemble import Ensemble
from capnets.models.registry import MODELS
from capnets.models.sorted import SortedNetwork
from capnets.nn import encoders
from capnets.nn.covariates import CovariateBaseline
from capnets.nn.projection import COMPONENTS, Project
from capnets.nn.random import draw_from
from capnets.records import Record

__all__ = ["ModelSpec", "build", "parameters"]


@dataclass(frozen=True)
class ModelSpec(Record):
    """Everything needed to build a network again.

    Parameters
    ----------
    name
        Name in the registry.
    in_features
        Features of an instance. For images: features behind the convolutions.
    hidden
        Size of the state (the paper's number of hidden dimensions).
    layers
        Fully connected layers of the encoder; 2 and 3 are the paper's 2fc and 3fc.
    outputs
        Labels per set.
    activation
        Activation of added values in capacity networks: abs, identity or softplus. A potential
        network applies it to its weights.
    inputs
        First module that instances pass: `none`, `standardize`, `project` (principal components;
        networks that pool the features themselves standardize them) or `pictures` (convolutions).
    dropout
        Share of standardized features or components that training sets to their mean at random.
    warp
        Whether training distorts images at random.
    members
        Number of networks that are averaged; see `capnets.models.ensemble`.
    order
        Order in which instances are read: `given`, or sorted by `worth` or by the index of a
        feature; see `capnets.models.sorted`.
    aggregation
        How values form the prediction of a capacity network: `sum`, `mean`, `mean+sum`, `any` or
        `last`; see `capnets.models.aggregations`.
    baseline
        Prediction for the empty set: `none` (0) or `learned`.
    width
        Width inside the encoder. None is the paper's form: 64, and attention scores from the
        features; with a width they are computed from encoded instances.
    mixed
        Networks of the members if they differ, each as `name:aggregation:baseline`. All other
        settings are shared. Empty: all members are the network `name`.
    covariates
        Numbers that are known of a set as a whole. They follow the `in_features` features of every
        instance, and the baseline depends on them; see `capnets.nn.covariates`.
    """

    name: str
    in_features: int = 64
    hidden: int = 32
    layers: int = 3
    outputs: int = 1
    activation: str = "abs"
    inputs: str = "none"
    dropout: float = 0.0
    warp: bool = False
    members: int = 1
    order: str | int = "given"
    aggregation: str = "sum"
    baseline: str = "none"
    width: int | None = None
    mixed: tuple[str, ...] = ()
    covariates: int = 0

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown("model" if name == "name" else name, getattr(self, name), choices)
        for name in ("in_features", "hidden", "layers", "outputs", "members", "width"):
            value = getattr(self, name)
            if (name, value) != ("width", None) and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
        self._check_extent()
        if not 0 <= self.dropout < 1 or (self.dropout and self.inputs not in SCALED):
            raise InputError(
                f"dropout must be at least 0 and below 1, and needs inputs='standardize'; "
                f"it is {self.dropout} with inputs={self.inputs!r}"
            )
        if self.warp and self.inputs != "pictures":
            raise InputError(f"warp needs inputs='pictures', not {self.inputs!r}")
        self._check_parts()
        self._check_covariates()
        if self.mixed and len(self.mixed) != self.members:
            raise InputError(f"{len(self.mixed)} mixed networks, but members={self.members}")
        if self.mixed:
            self.each()  # raise if one of them does not exist

    def each(self) -> list[ModelSpec]:
        """Return the settings of every member."""
        alone = replace(self, members=1, mixed=())
        if not self.mixed:
            return [alone] * self.members
        parts = [dict(zip(PARTS, one.split(":"), strict=False)) for one in self.mixed]
        return [ModelSpec.from_dict(alone.to_dict() | part) for part in parts]

    @property
    def title(self) -> str:
        """Short name of the network, or of all that are averaged."""
        if self.members == 1:
            return self.name
        counts = Counter(one.name for one in self.each())
        return " + ".join(f"{count} {name}" for name, count in counts.items()) + " networks"

    def _check_extent(self) -> None:
        """Refuse a damaged or hostile configuration that would exhaust time and memory."""
        if self.members > 1000 or self.layers > 1000:
            raise InputError(f"{self.members} members of {self.layers} layers: at most 1,000 each")
        wide = max(self.hidden, self.width or 0)
        if self.members * self.layers * wide * max(wide, self.in_features, self.outputs) > 2**34:
            raise InputError(
                f"the network is too large: hidden={self.hidden}, layers={self.layers}, "
                f"members={self.members}, in_features={self.in_features}"
            )

    def _check_parts(self) -> None:
        entry = MODELS[self.name]
        for name, supported in (
            ("aggregation", entry.aggregations),
            ("baseline", entry.baselines),
        ):
            value = getattr(self, name)
            if value not in supported:
                others = [k for k, e in MODELS.items() if value in getattr(e, f"{name}s")]
                raise InputError(
                    f"{self.name} does not support {name}={value!r}; "
                    f"networks that do: {', '.join(others)}"
                )
        if (self.aggregation, self.baseline) != ("sum", "none"):
            check_parts(self.activation, self.aggregation, self.baseline)

    def _check_covariates(self) -> None:
        if not 0 <= self.covariates <= 2**20:
            raise InputError(f"covariates must be a whole number from 0, not {self.covariates!r}")
        if not self.covariates:
            return
        if self.inputs in ("pictures", "project"):
            raise InputError(
                "covariates need instances that are rows of features: "
                "use inputs='none' or 'standardize'"
            )
        if self.name == "c-trees":
            raise InputError(
                "c-trees does not support covariates: its trees grow before the baseline learns; "
                "use c-pool"
            )
        if AGGREGATIONS[self.aggregation].probability:
            raise InputError(
                f"aggregation {self.aggregation!r} gives probabilities, to which a baseline that "
                "depends on covariates cannot be added: use another aggregation"
            )

    def build(self, seed: int | None = None) -> SetModel:
        """Build the network, with initial weights drawn from the seed.

        None draws from torch's global generator, as torch's own modules do.
        """
        with nullcontext() if seed is None else draw_from(seed):
            members = [one._network() for one in self.each()]
        return members[0] if self.members == 1 else Ensemble(members)

    def _network(self) -> SetModel:
        read = replace(self, in_features=self.in_features + self.covariates, covariates=0)
        own = MODELS[self.name].drops_out
        if own:  # pools the features themselves
            inputs = "standardize" if self.inputs == "project" else self.inputs
            read = replace(read, inputs=inputs)
        behind = COMPONENTS if read.inputs == "project" else read.in_features
        model = MODELS[self.name].make(replace(read, in_features=behind))
        if self.order != "given":
            model = SortedNetwork(model, by=self.order)
        model.inputs = INPUTS[read.inputs](replace(read, dropout=0.0) if own else read)
        if self.covariates:
            model.covariate_baseline = CovariateBaseline(
                self.covariates, self.outputs, hidden=self.hidden
            )
        return model


#: First modules that scale features, and drop some of them out.
SCALED = ("standardize", "project")
#: Settings in which mixed networks differ.
PARTS = ("name", "aggregation", "baseline")

INPUTS: dict[str, Callable[[ModelSpec], nn.Module]] = {
    "none": lambda spec: nn.Identity(),
    "standardize": lambda spec: encoders.Standardize(spec.in_features, dropout=spec.dropout),
    "project": lambda spec: Project(spec.in_features, dropout=spec.dropout),
    "pictures": lambda spec: encoders.ConvEncoder(spec.in_features, warp=spec.warp),
}

CHOICES: dict[str, Any] = {
    "name": MODELS,
    "activation": ACTIVATIONS,
    "inputs": INPUTS,
    "aggregation": AGGREGATIONS,
    "baseline": BASELINES,
}


def build(name: str, *, seed: int | None = None, **settings: Any) -> SetModel:
    """Build a network by name; the settings are those of `ModelSpec`.

    >>> parameters(build("c-gru", in_features=64))
    19937
    """
    return ModelSpec.from_dict({"name": name, **settings}).build(seed)


def parameters(model: nn.Module) -> int:
    """Return the number of trained parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
