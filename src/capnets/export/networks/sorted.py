"""Networks that sort instances before reading them."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.networks.base import predict, prediction
from capnets.export.rows import Rows
from capnets.models.sorted import SortedNetwork


@predict.register(SortedNetwork)
def _(model: SortedNetwork, g: Graph, x: Rows) -> Edge:
    if isinstance(model.by, int):
        column = g.add("Gather", x.edge, g.integers(model.by), axis=1)
    else:
        alone = _of_network(model, g, Rows.of(g, g.add("Unsqueeze", x.edge, g.integers(1))))
        column = g.add("Neg", g.add("ReduceSum", alone, g.integers(1)))
    scores = g.add("Squeeze", x.become(column).padded(g), g.integers(2))
    if x.mask is not None:  # padding stays at the end
        scores = g.add("Where", x.mask, scores, g.constant(np.inf))
    order = _reading(g, x, scores)
    sets = g.range(g.add("Squeeze", x.sets, g.integers(0)))
    first = g.add("Unsqueeze", g.add("Mul", sets, x.size), g.integers(1))
    rows = g.add("Gather", x.edge, g.add("Add", first, order))
    return _of_network(model, g, Rows.of(g, rows, x.mask))


def _reading(g: Graph, x: Rows, scores: Edge) -> Edge:
    """Sort the instances of every set by score, then by all features."""
    # Unique returns the distinct rows in lexicographic order, so its indices are ranks.
    _, _, ranks = g.add_many("Unique", x.edge, outputs=3, axis=0, sorted=1)
    ranks = g.add("Reshape", ranks, g.add("Concat", x.sets, x.size, axis=0))
    # TopK returns equal numbers in their given order, like a stable sort.
    _, by_rank = g.add_many("TopK", ranks, x.size, outputs=2, largest=0)
    _, order = g.add_many(
        "TopK", g.add("GatherElements", scores, by_rank, axis=1), x.size, outputs=2, largest=0
    )
    return g.add("GatherElements", by_rank, order, axis=1)


def _of_network(model: SortedNetwork, g: Graph, x: Rows) -> Edge:
    """Predict with the inner network, in units; the wrapper has the same unit."""
    return g.add("Div", prediction(model.network, g, x), g.constant(model.network.unit))
