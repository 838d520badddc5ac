"""Set networks by name.

>>> model = build("c-gru", in_features=64)
>>> parameters(model)
19937
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from torch import nn

from capnets.errors import InputError, unknown
from capnets.models.attention import AttentionNetwork
from capnets.models.base import AdditiveModel, SetModel
from capnets.models.capacity import ACTIVATIONS, CapacityNetwork
from capnets.models.deep_sets import DeepSet
from capnets.models.ensemble import Ensemble
from capnets.models.potential import PotentialNetwork
from capnets.models.recurrent import RecurrentNetwork
from capnets.models.set_transformer import SetTransformer
from capnets.models.sorted import SortedNetwork
from capnets.nn import encoders
from capnets.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.random import draw_from
from capnets.records import Record

__all__ = [
    "MODELS",
    "AdditiveModel",
    "CapacityNetwork",
    "Ensemble",
    "Entry",
    "ModelSpec",
    "SetModel",
    "build",
    "parameters",
]


@dataclass(frozen=True)
class ModelSpec(Record):
    """Everything needed to build a network again; recorded with every run.

    Parameters
    ----------
    name
        A name of the registry.
    in_features
        Features of an instance. For pictures: what the convolutions give the network.
    hidden
        Size of the state (the paper's number of hidden dimensions).
    layers
        Fully connected layers of the encoder; 2 and 3 are the paper's 2fc and 3fc.
    outputs
        Labels per set.
    activation
        Of added values: abs, identity or softplus; only capacity networks have one. In a potential
        network the weights pass it.
    inputs
        What instances pass through first: `none`, `standardize` or `pictures` (convolutions).
    dropout
        The share of standardised features that training blanks at random.
    warp
        Whether training sees pictures warped a bit, in a fresh way every time.
    members
        How many such networks are averaged; see `capnets.models.ensemble`.
    order
        In which order instances are read: `given`, or sorted by `worth` or by a feature, which is
        named by its number; see `capnets.models.sorted`.
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

    def __post_init__(self) -> None:
        for name, choices in (("name", MODELS), ("activation", ACTIVATIONS), ("inputs", INPUTS)):
            if getattr(self, name) not in choices:
                raise unknown("model" if name == "name" else name, getattr(self, name), choices)
        for name in ("in_features", "hidden", "layers", "outputs", "members"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")

        if not 0 <= self.dropout < 1 or (self.dropout and self.inputs != "standardize"):
            raise InputError(
                f"dropout must be at least 0 and below 1, and needs inputs='standardize'; "
                f"it is {self.dropout} with inputs={self.inputs!r}"
            )
        if self.warp and self.inputs != "pictures":
            raise InputError(
                f"only pictures can be warped: warp needs inputs='pictures', not {self.inputs!r}"
            )

    def build(self, seed: int | None = None) -> SetModel:
        """Return the network, with initial weights drawn from the seed.

        None draws from torch's global generator, as torch's own modules do.
        """
        with nullcontext() if seed is None else draw_from(seed):
            members = [self._network() for _ in range(self.members)]
        return members[0] if self.members == 1 else Ensemble(members)

    def _network(self) -> SetModel:
        model = MODELS[self.name].make(self)
        if self.order != "given":
            model = SortedNetwork(model, by=self.order)
        model.inputs = INPUTS[self.inputs](self)
        return model


@dataclass(frozen=True)
class Entry:
    """A network of the registry: how the paper calls it, what it is, and how it is made."""

    label: str
    about: str
    make: Callable[[ModelSpec], SetModel]
    counterpart: str | None = None


def _encoder(spec: ModelSpec) -> nn.Sequential:
    return encoders.encoder(spec.in_features, spec.hidden, layers=spec.layers)


def _decoder(spec: ModelSpec, in_features: int | None = None) -> nn.Sequential:
    return encoders.decoder(
        in_features or spec.hidden, spec.outputs, layers=spec.layers, hidden=spec.hidden
    )


def _capacity(
    cell: Callable[[int, int], Cell], *, remembers: int = 1
) -> Callable[[ModelSpec], SetModel]:
    def make(spec: ModelSpec) -> SetModel:
        memory = cell(spec.hidden, remembers * spec.hidden)
        return CapacityNetwork(
            encoder=_encoder(spec),
            cell=memory,
            decoder=_decoder(spec, memory.out_features),
            activation=spec.activation,
        )

    return make


def _potential(spec: ModelSpec) -> SetModel:
    # A unit for every sum and every square of one, then units that may join several of them.
    inner = (2 * spec.hidden, *[spec.hidden] * (spec.layers - 2))
    sizes = (spec.hidden, *inner, spec.outputs)
    return PotentialNetwork(encoder=_encoder(spec), sizes=sizes, activation=spec.activation)


def _recurrent(cell: type[Cell]) -> Callable[[ModelSpec], SetModel]:
    return lambda spec: RecurrentNetwork(
        encoder=_encoder(spec),
        cell=cell(spec.hidden, spec.hidden),
        decoder=_decoder(spec),
    )


def _deep_set(spec: ModelSpec) -> SetModel:
    return DeepSet(encoder=_encoder(spec), decoder=_decoder(spec))


def _attention(spec: ModelSpec) -> SetModel:
    scores = nn.Sequential(
        nn.Linear(spec.in_features, spec.in_features), nn.Tanh(), nn.Linear(spec.in_features, 1)
    )
    return AttentionNetwork(encoder=_encoder(spec), scores=scores, decoder=_decoder(spec))


def _set_transformer(large: bool) -> Callable[[ModelSpec], SetModel]:
    return lambda spec: SetTransformer(
        in_features=spec.in_features, hidden=spec.hidden, outputs=spec.outputs, large=large
    )


INPUTS: dict[str, Callable[[ModelSpec], nn.Module]] = {
    "none": lambda spec: nn.Identity(),
    "standardize": lambda spec: encoders.Standardize(spec.in_features, dropout=spec.dropout),
    "pictures": lambda spec: encoders.ConvEncoder(spec.in_features, warp=spec.warp),
}

MODELS: dict[str, Entry] = {
    "rnn": Entry("RNN", "plain recurrent cell, last state decoded", _recurrent(RNNCell)),
    "lstm": Entry("LSTM", "long short-term memory, last state decoded", _recurrent(LSTMCell)),
    "gru": Entry("GRU", "gated recurrent unit, last state decoded", _recurrent(GRUCell)),
    "c-rnn": Entry("C-RNN", "capacity network on a plain cell", _capacity(RNNCell), "rnn"),
    "c-lstm": Entry("C-LSTM", "capacity network on an LSTM", _capacity(LSTMCell), "lstm"),
    "c-gru": Entry("C-GRU", "capacity network on a GRU", _capacity(GRUCell), "gru"),
    "c-deepset": Entry(
        "C-DeepSet",
        "capacity network on counts of what came before",
        _capacity(ContextCell, remembers=2),  # twice as many kinds as features
    ),
    "c-potential": Entry(
        "C-Potential", "capacity network that no order changes: a monotone set function", _potential
    ),
    "deepset": Entry("DeepSet", "sum of encoded instances, decoded", _deep_set),
    "attention": Entry("Attention", "weighted mean of encoded instances, decoded", _attention),
    "set-transformer": Entry("Set Transformer", "self-attention, pooled", _set_transformer(False)),
    "set-transformer-l": Entry(
        "Set Transformer L", "larger, inducing points", _set_transformer(True)
    ),
}


def build(name: str, *, seed: int | None = None, **settings: Any) -> SetModel:
    """A network by name; the settings are those of `ModelSpec`, and an unknown one is an error."""
    return ModelSpec.from_dict({"name": name, **settings}).build(seed)


def parameters(model: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
