"""Registry of networks. To add one, write a file and add a line to `BUILT_IN`.

Installed packages add networks through the entry-point group `capnets.models`; see
docs/how-to/add-a-network.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from torch import nn

from capnets.errors import InputError
from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.attention import AttentionNetwork
from capnets.models.base import SetModel
from capnets.models.capacity import CapacityNetwork
from capnets.models.deep_sets import DeepSet
from capnets.models.pairs import PairsNetwork
from capnets.models.potential import PotentialNetwork
from capnets.models.recurrent import RecurrentNetwork
from capnets.models.set_transformer import SetTransformer
from capnets.nn import encoders
from capnets.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["MODELS", "Entry", "decoder", "encoder"]

Make = Callable[["ModelSpec"], SetModel]

#: Entry-point group of packages that add networks.
GROUP = "capnets.models"


@dataclass(frozen=True)
class Entry:
    """A network of the registry.

    Parameters
    ----------
    label
        Name in tables.
    about
        Description in a few words.
    make
        Builds the network from its settings.
    aggregations
        Values of the setting `aggregation` that the network supports.
    baselines
        Values of the setting `baseline` that the network supports.
    counterpart
        The network with the same encoder, cell and decoder that is not additive.
    """

    label: str
    about: str
    make: Make
    aggregations: tuple[str, ...] = ("sum",)
    baselines: tuple[str, ...] = ("none",)
    counterpart: str | None = None


def encoder(spec: ModelSpec) -> nn.Sequential:
    """Build the paper's encoder."""
    return encoders.encoder(spec.in_features, spec.hidden, layers=spec.layers)


def decoder(spec: ModelSpec, *, in_features: int | None = None, heads: int = 1) -> nn.Sequential:
    """Build the paper's decoder, with `heads` numbers per output."""
    return encoders.decoder(
        in_features or spec.hidden, heads * spec.outputs, layers=spec.layers, hidden=spec.hidden
    )


def _capacity(
    label: str,
    about: str,
    cell: Callable[[int, int], Cell],
    *,
    width: int = 1,
    counterpart: str | None = None,
) -> Entry:
    def make(spec: ModelSpec) -> SetModel:
        made = cell(spec.hidden, width * spec.hidden)
        heads = AGGREGATIONS[spec.aggregation].heads
        return CapacityNetwork(
            encoder=encoder(spec),
            cell=made,
            decoder=decoder(spec, in_features=made.out_features, heads=heads),
            activation=spec.activation,
            aggregation=spec.aggregation,
            baseline=spec.baseline,
        )

    return Entry(
        label,
        about,
        make,
        aggregations=(*AGGREGATIONS,),
        baselines=BASELINES,
        counterpart=counterpart,
    )


def _recurrent(label: str, about: str, cell: type[Cell]) -> Entry:
    def make(spec: ModelSpec) -> SetModel:
        return RecurrentNetwork(
            encoder=encoder(spec), cell=cell(spec.hidden, spec.hidden), decoder=decoder(spec)
        )

    return Entry(label, about, make)


def _potential(spec: ModelSpec) -> SetModel:
    # One unit per sum and one per bend of it, then units that may join several of them.
    inner = (2 * spec.hidden, *[spec.hidden] * (spec.layers - 2))
    sizes = (spec.hidden, *inner, spec.outputs)
    return PotentialNetwork(encoder=encoder(spec), sizes=sizes, activation=spec.activation)


def _pairs(spec: ModelSpec) -> SetModel:
    return PairsNetwork(
        encoder=encoder(spec),
        decoder=decoder(spec),
        pairs=encoders.mlp(spec.hidden, spec.hidden, spec.hidden),
        learned=spec.baseline == "learned",
    )


def _deep_set(spec: ModelSpec) -> SetModel:
    return DeepSet(encoder=encoder(spec), decoder=decoder(spec))


def _attention(spec: ModelSpec) -> SetModel:
    scores = nn.Sequential(
        nn.Linear(spec.in_features, spec.in_features), nn.Tanh(), nn.Linear(spec.in_features, 1)
    )
    return AttentionNetwork(encoder=encoder(spec), scores=scores, decoder=decoder(spec))


def _set_transformer(spec: ModelSpec, *, large: bool = False) -> SetModel:
    return SetTransformer(
        in_features=spec.in_features, hidden=spec.hidden, outputs=spec.outputs, large=large
    )


BUILT_IN: dict[str, Entry] = {
    "rnn": _recurrent("RNN", "plain recurrent cell, last state decoded", RNNCell),
    "lstm": _recurrent("LSTM", "long short-term memory, last state decoded", LSTMCell),
    "gru": _recurrent("GRU", "gated recurrent unit, last state decoded", GRUCell),
    "c-rnn": _capacity("C-RNN", "capacity network on a plain cell", RNNCell, counterpart="rnn"),
    "c-lstm": _capacity("C-LSTM", "capacity network on an LSTM", LSTMCell, counterpart="lstm"),
    "c-gru": _capacity("C-GRU", "capacity network on a GRU", GRUCell, counterpart="gru"),
    "c-deepset": _capacity(  # twice as many kinds as features
        "C-DeepSet", "capacity network on counts of the instances before", ContextCell, width=2
    ),
    "c-potential": Entry(
        "C-Potential", "capacity network without order: a monotone set function", _potential
    ),
    "c-pairs": Entry(
        "C-Pairs",
        "values of instances and pairs; exact Shapley values for any size",
        _pairs,
        baselines=BASELINES,
    ),
    "deepset": Entry("DeepSet", "sum of encoded instances, decoded", _deep_set),
    "attention": Entry("Attention", "weighted mean of encoded instances, decoded", _attention),
    "set-transformer": Entry("Set Transformer", "self-attention, pooled", _set_transformer),
    "set-transformer-l": Entry(
        "Set Transformer L",
        "larger, inducing points",
        lambda spec: _set_transformer(spec, large=True),
    ),
}


class Registry(MutableMapping[str, Entry]):
    """Networks by name: the built-in ones, those set here, and those of installed packages.

    Packages are imported when a name is not built in, or when all names are listed.
    """

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries

    @cached_property
    def plug_ins(self) -> dict[str, Entry]:
        """Networks of the entry-point group `capnets.models`."""
        found: dict[str, Entry] = {}
        for point in entry_points(group=GROUP):
            entry = point.load()
            if not isinstance(entry, Entry):
                raise InputError(
                    f"entry point {point.name!r} of {GROUP} is {entry!r}, "
                    "but must be a capnets.models.Entry"
                )
            if point.name in self._entries or point.name in found:
                raise InputError(f"two networks are named {point.name!r}: see {point.value}")
            found[point.name] = entry
        return found

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name] if name in self._entries else self.plug_ins[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._entries, *self.plug_ins])

    def __len__(self) -> int:
        return len(self._entries) + len(self.plug_ins)


MODELS = Registry(BUILT_IN)
