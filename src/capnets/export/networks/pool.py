"""C-Pool: differences between the decoded statistics of successive prefixes."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import Memory, advance, memory, read, scaled
from capnets.export.rows import Rows
from capnets.models.pool import PoolNetwork


@advance.register(PoolNetwork)
def _(model: PoolNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    new = x.become(g.cast(read(model, g, x).edge, np.float64))
    if not x.size:
        assert state is not None  # one instance at a time, always after others
        after = _next(model, g, state, new.edge)
        rise = g.add("Sub", _decoded(model, g, after), _decoded(model, g, state))
        return scaled(model, g, rise), after
    if state is None:
        shape = g.add("Concat", x.sets, g.integers(model.state_features), axis=0)
        state = g.add("Expand", g.constant([[0.0]], np.float64), shape)
    body = Graph(parent=g)
    before, instance = body.fresh("before"), body.fresh("instance")
    pooled = _next(model, body, before, instance)
    after, every = g.scan(body, (before, instance), pooled, state, new.by_instance(g))
    every = g.add("Concat", g.add("Unsqueeze", state, g.integers(0)), every, axis=0)
    rows = g.add("Reshape", every, g.integers(-1, model.state_features))
    shape = g.add("Concat", g.integers(-1), x.sets, g.integers(model.outputs), axis=0)
    beliefs = g.add("Reshape", _decoded(model, g, rows), shape)
    first, last = g.integers(0), g.integers(np.iinfo(np.int64).max)
    later = g.add("Slice", beliefs, g.integers(1), last, first)
    rises = g.add("Sub", later, g.add("Slice", beliefs, first, g.integers(-1), first))
    return g.add("Transpose", scaled(model, g, rises), perm=[1, 0, 2]), after


@memory.register(PoolNetwork)
def _(model: PoolNetwork) -> Memory:
    return Memory(model.state_features, np.float64)  # streams can be arbitrarily long


def _next(model: PoolNetwork, g: Graph, state: Edge, x: Edge) -> Edge:
    """Return the statistics after one more instance per set."""
    mean, high, low, count = _split(model, g, state)
    after = g.add("Add", count, g.constant(1.0, np.float64))
    some = g.add("Greater", count, g.constant(0.0, np.float64))
    moved = g.add("Add", mean, g.add("Div", g.add("Sub", x, mean), after))
    high = g.add("Where", some, g.add("Max", high, x), x)
    low = g.add("Where", some, g.add("Min", low, x), x)
    return g.add("Concat", moved, high, low, after, axis=1)


def _decoded(model: PoolNetwork, g: Graph, pooled: Edge) -> Edge:
    """Return the prediction in units; the baseline where there is no instance."""
    *features, count = _split(model, g, pooled)
    log = g.add("Log", g.add("Max", count, g.constant(1.0, np.float64)))
    statistics = g.cast(g.add("Concat", *features, log, axis=1), np.float32)
    decoded = layer(model.decoder, g, layer(model.statistics, g, statistics))
    some = g.add("Greater", count, g.constant(0.0, np.float64))
    return g.add("Where", some, decoded, g.constant(model.empty()))


def _split(model: PoolNetwork, g: Graph, state: Edge) -> tuple[Edge, ...]:
    width = model.state_features // 3
    return g.add_many("Split", state, g.integers(width, width, width, 1), outputs=4, axis=1)
