"""Graph pieces of the set networks: raw instances in, amounts in the unit of the label out.

`prediction` gives sets x outputs, `added_values` sets x size x outputs, where what stands behind
the end of a set is not used; `advance` goes on from what was remembered. A new network needs a
function for the first, and one for the second where a loop over prefixes would be slow.
"""

from __future__ import annotations

from functools import singledispatch
from typing import cast

import numpy as np

from capnets.errors import InputError
from capnets.export.attention import block
from capnets.export.cells import cell, step
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.rows import Rows, softmax
from capnets.models.attention import AttentionNetwork
from capnets.models.base import SetModel, SteppingModel
from capnets.models.capacity import CapacityNetwork
from capnets.models.deep_sets import DeepSet
from capnets.models.ensemble import Ensemble
from capnets.models.potential import PotentialNetwork
from capnets.models.recurrent import RecurrentNetwork
from capnets.models.set_transformer import SetTransformer
from capnets.models.sorted import SortedNetwork

__all__ = ["added_values", "advance", "prediction", "streams"]

ACTIVATIONS = {"abs": "Abs", "identity": "Identity", "softplus": "Softplus"}


@singledispatch
def prediction(model: SetModel, g: Graph, x: Rows) -> Edge:
    """The predictions of whole sets."""
    return _scaled(model, g, _predict(model, g, _read(model, g, x)))


@singledispatch
def added_values(model: SetModel, g: Graph, x: Rows) -> Edge:
    """What each instance adds to those before it: differences of the predictions of prefixes."""
    prefixes = _scaled(model, g, _predict_prefixes(model, g, _read(model, g, x)))
    # Padding by 1 in front and by -1 behind moves everything back by one, and a 0 to the front.
    return g.add("Sub", prefixes, g.add("Pad", prefixes, g.integers(0, 1, 0, 0, -1, 0)))


# Networks that read step by step ----------------------------------------------------------------


def streams(model: SetModel) -> bool:
    """Whether a network can read a set piece by piece."""
    if isinstance(model, Ensemble):
        return all(streams(member) for member in model.each)
    return isinstance(model, SteppingModel)


@singledispatch
def advance(model: SetModel, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    """Added values of the next instances of every set, and what to remember."""
    raise InputError(
        f"there is no ONNX graph for a network of type {type(model).__name__} yet; "
        "write one and register it with `capnets.export.networks.advance.register`"
    )


@advance.register(CapacityNetwork)
def _(model: CapacityNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    z, after = _states(model, g, _read(model, g, x), state)
    values = g.add(ACTIVATIONS[model.activation], layer(model.decoder, g, z))
    return x.by_set(g, _scaled(model, g, values)), after


@advance.register(PotentialNetwork)
def _(model: PotentialNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    encoded = x.become(g.add("Relu", layer(model.encoder, g, _read(model, g, x).edge)))
    summands = encoded.by_instance(g)
    before = g.add("CumSum", summands, g.constant(0, np.int64), exclusive=1)
    total = g.add("ReduceSum", summands, g.integers(0), keepdims=0)
    if state is not None:
        before, total = g.add("Add", before, state), g.add("Add", total, state)
    worth = [
        layer(model.decoder, g, g.add("Reshape", sums, g.integers(-1, model.state_features)))
        for sums in (before, g.add("Add", before, summands))
    ]
    values = g.add("Add", g.add("Sub", worth[1], worth[0]), g.constant(model.each_adds))
    return x.by_set(g, _scaled(model, g, values)), total


@added_values.register(SteppingModel)
def _(model: SteppingModel, g: Graph, x: Rows) -> Edge:
    return advance(model, g, x, None)[0]


@prediction.register(SteppingModel)
def _(model: SteppingModel, g: Graph, x: Rows) -> Edge:
    values = Rows.of(g, added_values(model, g, x), x.mask).blank(g)
    return g.add("ReduceSum", values.padded(g), g.integers(1), keepdims=0)


# Ensembles --------------------------------------------------------------------------------------


@prediction.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows) -> Edge:
    return g.add("Mean", *(prediction(member, g, x) for member in model.each))


@added_values.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows) -> Edge:
    return g.add("Mean", *(added_values(member, g, x) for member in model.each))


@advance.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    members = cast("list[SteppingModel]", model.each)
    states: tuple[Edge | None, ...] = (None,) * len(members)
    if state is not None:
        sizes = g.integers(*(member.state_features for member in members))
        states = g.add_many("Split", state, sizes, outputs=len(members), axis=1)
    pairs = [advance(member, g, x, s) for member, s in zip(members, states, strict=True)]
    values, after = zip(*pairs, strict=True)
    return g.add("Mean", *values), g.add("Concat", *after, axis=1)


# Other networks, in their own unit --------------------------------------------------------------


@singledispatch
def _predict(model: SetModel, g: Graph, x: Rows) -> Edge:
    raise InputError(
        f"there is no ONNX graph for a network of type {type(model).__name__} yet; "
        "write one and register it with `capnets.export.networks.prediction.register`"
    )


@singledispatch
def _predict_prefixes(model: SetModel, g: Graph, x: Rows) -> Edge:
    """The predictions of all prefixes, sets x size x outputs: a loop over their lengths.

    What stands at and behind the end of a set needs no mask: it is in no shorter prefix.
    """
    sets, body = x.padded(g), Graph(parent=g)
    counter = body.fresh("counter")
    length = body.add("Add", counter, body.integers(1))
    prefix = body.add("Slice", sets, body.integers(0), length, body.integers(1))
    result = _predict(model, body, Rows.of(body, prefix))
    return g.add("Transpose", g.loop(x.count(g), body, counter, result), perm=[1, 0, 2])


@_predict.register(RecurrentNetwork)
def _(model: RecurrentNetwork, g: Graph, x: Rows) -> Edge:
    z, _ = _states(model, g, x, None)
    # States stand instance by instance, so the last one of set s is in row (size - 1) sets + s.
    ends = g.add("Sub", g.add("Squeeze", x.sizes(g), g.integers(1)), g.integers(1))
    numbers = g.range(g.add("Squeeze", x.sets, g.integers(0)))
    which = g.add("Add", g.add("Mul", ends, x.sets), numbers)
    return layer(model.decoder, g, g.add("Gather", z, which))


@_predict_prefixes.register(RecurrentNetwork)
def _(model: RecurrentNetwork, g: Graph, x: Rows) -> Edge:
    # The state after k instances is the last state of the first k.
    z, _ = _states(model, g, x, None)
    return x.by_set(g, layer(model.decoder, g, z))


@_predict.register(DeepSet)
def _(model: DeepSet, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge)).blank(g).padded(g)
    total = g.add("ReduceSum", encoded, g.integers(1), keepdims=0)
    return layer(model.decoder, g, total)


@_predict_prefixes.register(DeepSet)
def _(model: DeepSet, g: Graph, x: Rows) -> Edge:
    encoded = x.become(layer(model.encoder, g, x.edge)).padded(g)
    sums = Rows.of(g, g.add("CumSum", encoded, g.constant(1, np.int64)))
    return sums.become(layer(model.decoder, g, sums.edge)).padded(g)


@_predict.register(AttentionNetwork)
def _(model: AttentionNetwork, g: Graph, x: Rows) -> Edge:
    mask = None if x.mask is None else g.add("Unsqueeze", x.mask, g.integers(1))
    return g.add("Squeeze", _attention(model, g, x, mask), g.integers(1))


@_predict_prefixes.register(AttentionNetwork)
def _(model: AttentionNetwork, g: Graph, x: Rows) -> Edge:
    # Row k of the mask shows the first k instances: one softmax gives the weights of all prefixes.
    numbers = g.range(x.count(g))
    prefix = g.add("LessOrEqual", numbers, g.add("Unsqueeze", numbers, g.integers(1)))
    return _attention(model, g, x, prefix)


def _attention(model: AttentionNetwork, g: Graph, x: Rows, mask: Edge | None) -> Edge:
    """The decoded weighted means, sets x (rows of the mask) x outputs."""
    scores = x.become(layer(model.scores, g, x.edge)).padded(g)
    weights = softmax(g, g.add("Transpose", scores, perm=[0, 2, 1]), mask)
    encoded = x.become(layer(model.encoder, g, x.edge)).padded(g)
    means = Rows.of(g, g.add("MatMul", weights, encoded))
    return means.become(layer(model.decoder, g, means.edge)).padded(g)


@_predict.register(SetTransformer)
def _(model: SetTransformer, g: Graph, x: Rows) -> Edge:
    for part in model.blocks:
        x = block(part, g, x)
    pooled = block(model.after, g, block(model.pool, g, x))
    return layer(model.output, g, pooled.edge)  # one row per set is left


@_predict.register(SortedNetwork)
def _(model: SortedNetwork, g: Graph, x: Rows) -> Edge:
    if isinstance(model.by, int):
        column = g.add("Gather", x.edge, g.integers(model.by), axis=1)
    else:
        alone = _of_network(model, g, Rows.of(g, g.add("Unsqueeze", x.edge, g.integers(1))))
        column = g.add("Neg", g.add("ReduceSum", alone, g.integers(1)))
    scores = g.add("Squeeze", x.become(column).padded(g), g.integers(2))
    if x.mask is not None:  # padding stays behind
        scores = g.add("Where", x.mask, scores, g.constant(np.inf))
    # Of equal scores TopK takes the earlier one first, as a stable sort does.
    _, order = g.add_many("TopK", scores, x.size, outputs=2, largest=0)
    sets = g.range(g.add("Squeeze", x.sets, g.integers(0)))
    first = g.add("Unsqueeze", g.add("Mul", sets, x.size), g.integers(1))
    rows = g.add("Gather", x.edge, g.add("Add", first, order))
    return _of_network(model, g, Rows.of(g, rows, x.mask))


def _of_network(model: SortedNetwork, g: Graph, x: Rows) -> Edge:
    """What the network behind the sorting predicts; its unit is that of the whole."""
    return g.add("Div", prediction(model.network, g, x), g.constant(model.network.unit))


# Shared -----------------------------------------------------------------------------------------


def _read(model: SetModel, g: Graph, x: Rows) -> Rows:
    read = x.become(layer(model.inputs, g, x.edge))
    # What is behind the end of a set comes after all that counts in an additive network. In others
    # it gets a weight of 0, which does not help against NaN.
    return read if model.additive else read.blank(g)


def _scaled(model: SetModel, g: Graph, values: Edge) -> Edge:
    return g.add("Mul", values, g.constant(model.unit))


def _states(
    model: CapacityNetwork | RecurrentNetwork, g: Graph, x: Rows, state: Edge | None
) -> tuple[Edge, Edge]:
    encoded = x.become(layer(model.encoder, g, x.edge))
    if state is not None and not x.size:
        return step(model.cell, g, encoded.edge, state)
    return cell(model.cell, g, encoded.by_instance(g), state)
