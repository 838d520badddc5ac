"""Registry of networks. To add one, write a file and add a line to `BUILT_IN`.

Installed packages add networks through the entry-point group `capnets.models`; see
docs/how-to/add-a-network.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from capnets.errors import InputError
from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.base import SetModel
from capnets.models.capacity import CapacityNetwork
from capnets.models.entry import Entry, decoder, encoder
from capnets.models.recurrent import RecurrentNetwork
from capnets.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.independent import IndependentCell

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["MODELS", "Entry", "decoder", "encoder"]

#: Entry-point group of packages that add networks.
GROUP = "capnets.models"


def _entry(module: str, name: str = "ENTRY") -> Entry:
    """Return the entry of a file of this package."""
    entry: Entry = getattr(import_module(f"capnets.models.{module}"), name)
    return entry


def _capacity(
    label: str,
    about: str,
    cell: Callable[[int, int], Cell],
    *,
    width: int = 1,
    counterpart: str | None = None,
    aggregations: tuple[str, ...] = (*AGGREGATIONS,),
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
        aggregations=aggregations,
        baselines=BASELINES,
        counterpart=counterpart,
    )


def _recurrent(label: str, about: str, cell: type[Cell]) -> Entry:
    def make(spec: ModelSpec) -> SetModel:
        return RecurrentNetwork(
            encoder=encoder(spec), cell=cell(spec.hidden, spec.hidden), decoder=decoder(spec)
        )

    return Entry(label, about, make)


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
    "c-independent": _capacity(
        "C-Independent",
        "every instance on its own: the aggregation alone joins them",
        lambda features, hidden: IndependentCell(features),
        aggregations=("sum", "mean", "mean+sum", "any"),  # not the last instance alone
    ),
    "c-linear": _entry("linear"),
    "c-potential": _entry("potential"),
    "c-pairs": _entry("pairs"),
    "c-pool": _entry("pool"),
    "c-trees": _entry("pool", "TREES"),
    "deepset": _entry("deep_sets"),
    "attention": _entry("attention"),
    "set-transformer": _entry("set_transformer"),
    "set-transformer-l": _entry("set_transformer", "LARGE"),
    "pointnet": _entry("pointnet"),
    "gated-attention": _entry("gated_attention"),
    "additive-mil": _entry("additive_mil"),
    "instance-lstm": _entry("instance_lstm"),
    "fspool": _entry("fspool"),
    "choquet": _entry("choquet"),
    "set2set": _entry("set2set"),
    "janossy-pairs": _entry("janossy"),
    "janossy-orders": _entry("janossy_orders"),
    "message-passing": _entry("message_passing"),
    "memory": _entry("memory"),
    "c-order": _entry("learned_order"),
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
