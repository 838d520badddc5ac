"""Capacity networks: a value for every state of their cell."""

from __future__ import annotations

import numpy as np

from capnets.export.aggregations import aggregate
from capnets.export.cells import cell, state_type, step
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.networks.base import Memory, advance, memory, read, scaled
from capnets.export.rows import Rows
from capnets.models.capacity import CapacityNetwork
from capnets.models.recurrent import RecurrentNetwork

__all__ = ["states"]

ACTIVATIONS = {"abs": "Abs", "identity": "Identity", "softplus": "Softplus"}


@advance.register(CapacityNetwork)
def _(model: CapacityNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    memory, sums = _split(model, g, state)
    z, after = states(model, g, read(model, g, x), memory)
    decoded = g.add(ACTIVATIONS[model.activation], layer(model.decoder, g, z))
    values, sums = aggregate(model.aggregation, g, decoded, x, sums)
    if sums is not None:
        after = g.add("Concat", g.cast(after, np.float64), sums, axis=1)
    return x.by_set(g, scaled(model, g, values)), after


@memory.register(CapacityNetwork)
def _(model: CapacityNetwork) -> Memory:
    sums = bool(model.aggregation.memory)
    return Memory(model.state_features, np.float64 if sums else state_type(model.cell))


def _split(model: CapacityNetwork, g: Graph, state: Edge | None) -> tuple[Edge | None, Edge | None]:
    """Split a state into that of the cell and the sums of the aggregation."""
    if state is None or not model.aggregation.memory:
        return state, None
    features = model.cell.state_features
    sizes = g.integers(features, model.state_features - features)
    memory, sums = g.add_many("Split", state, sizes, outputs=2, axis=1)
    dtype = state_type(model.cell)
    return memory if dtype is np.float64 else g.cast(memory, dtype), sums


def states(
    model: CapacityNetwork | RecurrentNetwork, g: Graph, x: Rows, state: Edge | None
) -> tuple[Edge, Edge]:
    """Compute the outputs of the cell, one per row, and its final state."""
    encoded = x.become(layer(model.encoder, g, x.edge))
    if state is not None and not x.size:
        return step(model.cell, g, encoded.edge, state)
    return cell(model.cell, g, encoded.by_instance(g), state)
