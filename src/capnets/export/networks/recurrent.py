"""The paper's recurrent counterparts: only the last state is decoded."""

from __future__ import annotations

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import predict, predict_prefixes
from capnets.export.networks.capacity import states
from capnets.export.rows import Rows
from capnets.models.recurrent import RecurrentNetwork


@predict.register(RecurrentNetwork)
def _(model: RecurrentNetwork, g: Graph, x: Rows) -> Edge:
    z, _ = states(model, g, x, None)
    # States are grouped by position, so the last one of set s is in row (size - 1) * sets + s.
    ends = g.add("Sub", g.add("Squeeze", x.sizes(g), g.integers(1)), g.integers(1))
    numbers = g.range(g.add("Squeeze", x.sets, g.integers(0)))
    which = g.add("Add", g.add("Mul", ends, x.sets), numbers)
    return layer(model.decoder, g, g.add("Gather", z, which))


@predict_prefixes.register(RecurrentNetwork)
def _(model: RecurrentNetwork, g: Graph, x: Rows) -> Edge:
    # The state after k instances is the last state of the first k.
    z, _ = states(model, g, x, None)
    return x.by_set(g, layer(model.decoder, g, z))
