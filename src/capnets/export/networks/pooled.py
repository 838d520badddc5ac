"""Networks that decode pooled instances: a sum, a maximum, a weighted mean."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import predict, predict_prefixes
from capnets.export.rows import Rows, softmax
from capnets.models.deep_sets import DeepSet
from capnets.models.gated_attention import Gate, GatedAttention
from capnets.models.pointnet import PointNet


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


@predict.register(PointNet)
def _(model: PointNet, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge)).padded(g)
    if x.mask is not None:
        real = g.add("Unsqueeze", x.mask, g.integers(2))
        encoded = g.add("Where", real, encoded, g.constant(-np.inf))
    return layer(model.decoder, g, g.add("ReduceMax", encoded, g.integers(1), keepdims=0))


@predict.register(GatedAttention)
def _(model: GatedAttention, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge))
    scores = x.become(layer(model.scores, g, encoded.edge)).padded(g)
    mask = None if x.mask is None else g.add("Unsqueeze", x.mask, g.integers(1))
    weights = softmax(g, g.add("Transpose", scores, perm=[0, 2, 1]), mask)
    mean = g.add("Squeeze", g.add("MatMul", weights, encoded.padded(g)), g.integers(1))
    return layer(model.decoder, g, mean)


@layer.register(Gate)
def _(module: Gate, g: Graph, x: Edge) -> Edge:
    gates = g.add("Sigmoid", layer(module.gate, g, x))
    units = g.add("Tanh", layer(module.units, g, x))
    return layer(module.output, g, g.add("Mul", units, gates))
