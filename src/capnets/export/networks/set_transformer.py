"""Set Transformers: block after block."""

from __future__ import annotations

from capnets.export.attention import block
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import predict
from capnets.export.rows import Rows
from capnets.models.set_transformer import SetTransformer


@predict.register(SetTransformer)
def _(model: SetTransformer, g: Graph, x: Rows) -> Edge:
    for part in model.blocks:
        x = block(part, g, x)
    pooled = block(model.after, g, block(model.pool, g, x))
    return layer(model.output, g, pooled.edge)  # one row per set is left
