"""DeepSet: a decoded sum."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import predict, predict_prefixes
from capnets.export.rows import Rows
from capnets.models.deep_sets import DeepSet


@predict.register(DeepSet)
def _(model: DeepSet, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge)).blank(g).padded(g)
    total = g.add("ReduceSum", encoded, g.integers(1), keepdims=0)
    return layer(model.decoder, g, total)


@predict_prefixes.register(DeepSet)
def _(model: DeepSet, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge)).padded(g)
    sums = Rows.of(g, g.add("CumSum", encoded, g.constant(1, np.int64)))
    return sums.become(layer(model.decoder, g, sums.edge)).padded(g)
