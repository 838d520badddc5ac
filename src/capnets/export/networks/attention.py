"""Attention: a decoded weighted mean."""

from __future__ import annotations

from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import predict, predict_prefixes
from capnets.export.rows import Rows, softmax
from capnets.models.attention import AttentionNetwork


@predict.register(AttentionNetwork)
def _(model: AttentionNetwork, g: Graph, x: Rows) -> Edge:
    mask = None if x.mask is None else g.add("Unsqueeze", x.mask, g.integers(1))
    return g.add("Squeeze", _attention(model, g, x, mask), g.integers(1))


@predict_prefixes.register(AttentionNetwork)
def _(model: AttentionNetwork, g: Graph, x: Rows) -> Edge:
    # Row k of the mask shows the first k instances: one softmax gives the weights of all prefixes.
    numbers = g.range(x.count(g))
    prefix = g.add("LessOrEqual", numbers, g.add("Unsqueeze", numbers, g.integers(1)))
    return _attention(model, g, x, prefix)


def _attention(model: AttentionNetwork, g: Graph, x: Rows, mask: Edge | None) -> Edge:
    """Decode the weighted means: sets x (rows of the mask) x outputs."""
    encoded = x.become(layer(model.encoder, g, x.edge))
    read = encoded if model.encodes else x
    scores = read.become(layer(model.scores, g, read.edge)).padded(g)
    weights = softmax(g, g.add("Transpose", scores, perm=[0, 2, 1]), mask)
    means = Rows.of(g, g.add("MatMul", weights, encoded.padded(g)))
    return means.become(layer(model.decoder, g, means.edge)).padded(g)
