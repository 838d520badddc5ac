"""C-Potential: differences between the potentials of successive sums."""

from __future__ import annotations

import numpy as np
import torch

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import Memory, advance, memory, prediction, read, scaled
from capnets.export.rows import Rows
from capnets.models.potential import PotentialNetwork


@advance.register(PotentialNetwork)
def _(model: PotentialNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    new = _summands(model, g, x)
    if state is None:
        every = g.add("Pad", new.by_instance(g), g.integers(1, *[0] * 5))
        rises, after = _rises(model, g, x, every)
    else:  # potentials grow with the stream, and their differences need the precision of float64
        new = new.become(g.cast(new.edge, np.float64))
        with g.wide():
            rises, after = (_rises_after if x.size else _rise)(model, g, new, state)
        rises = g.cast(rises, np.float32)
    values = g.add("Add", rises, g.constant(model.each_adds))
    return x.by_set(g, scaled(model, g, values)), after


@memory.register(PotentialNetwork)
def _(model: PotentialNetwork) -> Memory:
    return Memory(model.state_features, np.float64)


@prediction.register(PotentialNetwork)
def _(model: PotentialNetwork, g: Graph, x: Rows) -> Edge:
    """Compute the potential of whole sets only."""
    encoded = _summands(model, g, x).blank(g).padded(g)
    total = g.add("ReduceSum", encoded, g.integers(1), keepdims=0)
    with torch.no_grad():
        nothing = model.decoder(torch.zeros(1, model.state_features))
    rise = g.add("Sub", layer(model.decoder, g, total), g.constant(nothing))
    sizes = g.cast(x.sizes(g), np.float32)
    # Rounding may differ between the two potentials; an empty set must be exactly 0.
    rise = g.add("Where", g.add("Greater", sizes, g.constant(0.0)), rise, g.constant(0.0))
    each = g.add("Mul", sizes, g.constant(model.each_adds))
    return scaled(model, g, g.add("Add", rise, each))


def _summands(model: PotentialNetwork, g: Graph, x: Rows) -> Rows:
    return x.become(g.add("Relu", layer(model.encoder, g, read(model, g, x).edge)))


def _rise(model: PotentialNetwork, g: Graph, new: Rows, state: Edge) -> tuple[Edge, Edge]:
    """Compute the rise of the potential by one summand per set, and the new sums."""
    after = g.add("Add", state, new.edge)
    worth = layer(model.decoder, g, g.add("Concat", state, after, axis=0))
    low, high = g.add_many("Split", worth, outputs=2, axis=0, num_outputs=2)
    return g.add("Sub", high, low), after


def _rises_after(model: PotentialNetwork, g: Graph, new: Rows, state: Edge) -> tuple[Edge, Edge]:
    """Compute the rises of several summands per set."""
    first = g.add("Unsqueeze", state, g.integers(0))
    return _rises(model, g, new, g.add("Concat", first, new.by_instance(g), axis=0))


def _rises(model: PotentialNetwork, g: Graph, x: Rows, every: Edge) -> tuple[Edge, Edge]:
    """Compute the rise by each summand but the first, one row each, and the last sum."""
    sums = g.add("CumSum", every, g.constant(0, np.int64))
    worth = layer(model.decoder, g, g.add("Reshape", sums, g.integers(-1, model.state_features)))
    # Rows are grouped by position, so the next instance of a set is `sets` rows below.
    after = g.add("Slice", worth, x.sets, g.integers(np.iinfo(np.int64).max), g.integers(0))
    before = g.add("Slice", worth, g.integers(0), g.add("Neg", x.sets), g.integers(0))
    last = g.add("Gather", sums, g.constant(-1, np.int64), axis=0)
    return g.add("Sub", after, before), last
