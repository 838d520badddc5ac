"""Capacity networks: a value for every state of their cell."""

from __future__ import annotations

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
    z, after = states(model, g, read(model, g, x), state)
    values = g.add(ACTIVATIONS[model.activation], layer(model.decoder, g, z))
    return x.by_set(g, scaled(model, g, values)), after


@memory.register(CapacityNetwork)
def _(model: CapacityNetwork) -> Memory:
    return Memory(model.state_features, state_type(model.cell))


def states(
    model: CapacityNetwork | RecurrentNetwork, g: Graph, x: Rows, state: Edge | None
) -> tuple[Edge, Edge]:
    """All states of the cell, one row each, and what to remember after the last instance."""
    encoded = x.become(layer(model.encoder, g, x.edge))
    if state is not None and not x.size:
        return step(model.cell, g, encoded.edge, state)
    return cell(model.cell, g, encoded.by_instance(g), state)
