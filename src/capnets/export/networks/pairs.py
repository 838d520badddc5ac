"""C-Pairs: own values, and products with the sum of the instances before."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import Memory, advance, memory, read, scaled
from capnets.export.rows import Rows
from capnets.models.pairs import PairsNetwork


@advance.register(PairsNetwork)
def _(model: PairsNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    features = layer(model.encoder, g, read(model, g, x).edge)
    own, u = layer(model.decoder, g, features), layer(model.pairs, g, features)
    before, after = _sums(g, x.become(u if state is None else g.cast(u, np.float64)), state)
    product = g.add("Mul", u, before if state is None else g.cast(before, np.float32))
    pairs = g.add("Gemm", product, g.constant(model.scale * model.signs), own, transB=1)
    values = x.become(scaled(model, g, pairs))
    return values.padded(g) if x.size else values.edge, after


@memory.register(PairsNetwork)
def _(model: PairsNetwork) -> Memory:
    return Memory(model.state_features, np.float64)  # streams can be arbitrarily long


def _sums(g: Graph, u: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    """Return the sum of the rows before each row, and the sums over all rows of each set."""
    if not u.size:
        assert state is not None  # one instance at a time, always after others
        return state, g.add("Add", state, u.edge)
    sets = u.padded(g)
    before = g.add("CumSum", sets, g.constant(1, np.int64), exclusive=1)
    after = g.add("ReduceSum", sets, g.integers(1), keepdims=0)
    if state is not None:
        before = g.add("Add", before, g.add("Unsqueeze", state, g.integers(1)))
        after = g.add("Add", after, state)
    width = g.add("Shape", u.edge, start=1)
    return g.add("Reshape", before, g.add("Concat", g.integers(-1), width, axis=0)), after
