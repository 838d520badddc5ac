"""Graph pieces of the set networks: raw instances in, amounts in the unit of the label out.

`prediction` gives sets x outputs, `added_values` sets x size x outputs, where what stands behind
the end of a set is not used; `advance` goes on from what was remembered. A new network needs a
function for the first, and one for the second where a loop over prefixes would be slow. One that
reads step by step needs `advance` and `memory`, and `prediction` where that is more quickly known
than as the sum of added values.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np
import torch

from capnets.errors import InputError
from capnets.export.attention import block
from capnets.export.cells import cell, state_type, step
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

__all__ = ["Memory", "added_values", "advance", "memory", "prediction", "predicts_apart", "streams"]

ACTIVATIONS = {"abs": "Abs", "identity": "Identity", "softplus": "Softplus"}


class Memory(NamedTuple):
    """What a network remembers between two calls: how many numbers, and their type."""

    features: int
    dtype: type[np.generic]


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


def predicts_apart(model: SetModel) -> bool:
    """Whether predictions cost less without added values."""
    if isinstance(model, Ensemble):
        return any(predicts_apart(member) for member in model.each)
    as_sums = prediction.dispatch(SteppingModel)
    return not streams(model) or prediction.dispatch(type(model)) is not as_sums


@singledispatch
def memory(model: SetModel) -> Memory:
    """What `advance` takes and gives as a state."""
    raise InputError(f"a network of type {type(model).__name__} remembers nothing between calls")


@memory.register(SteppingModel)
def _(model: SteppingModel) -> Memory:
    return Memory(model.state_features, np.float32)


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


@memory.register(CapacityNetwork)
def _(model: CapacityNetwork) -> Memory:
    return Memory(model.state_features, state_type(model.cell))


@advance.register(PotentialNetwork)
def _(model: PotentialNetwork, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    new = _summands(model, g, x)
    if state is None:
        every = g.add("Pad", new.by_instance(g), g.integers(1, *[0] * 5))
        rises, after = _rises(model, g, x, every)
    else:  # in a stream potentials grow and grow, and their differences need the last digits
        new = new.become(g.cast(new.edge, np.float64))
        with g.wide():
            rises, after = (_rises_after if x.size else _rise)(model, g, new, state)
        rises = g.cast(rises, np.float32)
    values = g.add("Add", rises, g.constant(model.each_adds))
    return x.by_set(g, _scaled(model, g, values)), after


@memory.register(PotentialNetwork)
def _(model: PotentialNetwork) -> Memory:
    return Memory(model.state_features, np.float64)


@prediction.register(PotentialNetwork)
def _(model: PotentialNetwork, g: Graph, x: Rows) -> Edge:
    """The potential of the whole sets alone."""
    encoded = _summands(model, g, x).blank(g).padded(g)
    total = g.add("ReduceSum", encoded, g.integers(1), keepdims=0)
    with torch.no_grad():
        nothing = model.decoder(torch.zeros(1, model.state_features))
    rise = g.add("Sub", layer(model.decoder, g, total), g.constant(nothing))
    sizes = g.cast(x.sizes(g), np.float32)
    # Rounding may differ between both potentials; nothing is worth exactly nothing.
    rise = g.add("Where", g.add("Greater", sizes, g.constant(0.0)), rise, g.constant(0.0))
    each = g.add("Mul", sizes, g.constant(model.each_adds))
    return _scaled(model, g, g.add("Add", rise, each))


def _summands(model: PotentialNetwork, g: Graph, x: Rows) -> Rows:
    return x.become(g.add("Relu", layer(model.encoder, g, _read(model, g, x).edge)))


def _rise(model: PotentialNetwork, g: Graph, new: Rows, state: Edge) -> tuple[Edge, Edge]:
    """By how much one summand per set raises the potential, and the sums with it."""
    after = g.add("Add", state, new.edge)
    worth = layer(model.decoder, g, g.add("Concat", state, after, axis=0))
    low, high = g.add_many("Split", worth, outputs=2, axis=0, num_outputs=2)
    return g.add("Sub", high, low), after


def _rises_after(model: PotentialNetwork, g: Graph, new: Rows, state: Edge) -> tuple[Edge, Edge]:
    """The same for several summands per set."""
    first = g.add("Unsqueeze", state, g.integers(0))
    return _rises(model, g, new, g.add("Concat", first, new.by_instance(g), axis=0))


def _rises(model: PotentialNetwork, g: Graph, x: Rows, every: Edge) -> tuple[Edge, Edge]:
    """By how much each summand but the first raises the potential, one row each; and their sum."""
    sums = g.add("CumSum", every, g.constant(0, np.int64))
    worth = layer(model.decoder, g, g.add("Reshape", sums, g.integers(-1, model.state_features)))
    # Rows stand instance by instance: what follows a row stands as many rows below as sets are.
    after = g.add("Slice", worth, x.sets, g.integers(np.iinfo(np.int64).max), g.integers(0))
    before = g.add("Slice", worth, g.integers(0), g.add("Neg", x.sets), g.integers(0))
    last = g.add("Gather", sums, g.constant(-1, np.int64), axis=0)
    return g.add("Sub", after, before), last


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
    assert state is not None  # whole sets are read member by member
    own, together = [memory(member) for member in model.each], memory(model).dtype
    sizes = g.integers(*(m.features for m in own))
    parts = g.add_many("Split", state, sizes, outputs=len(own), axis=1)
    values, after = [], []
    for member, (_, dtype), part in zip(model.each, own, parts, strict=True):
        before = part if dtype == together else g.cast(part, dtype)
        some, then = advance(member, g, x, before)
        values.append(some)
        after.append(then if dtype == together else g.cast(then, together))
    return g.add("Mean", *values), g.add("Concat", *after, axis=1)


@memory.register(Ensemble)
def _(model: Ensemble) -> Memory:
    own = [memory(member) for member in model.each]
    return Memory(sum(m.features for m in own), np.result_type(*(m.dtype for m in own)).type)


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
    order = _reading(g, x, scores)
    sets = g.range(g.add("Squeeze", x.sets, g.integers(0)))
    first = g.add("Unsqueeze", g.add("Mul", sets, x.size), g.integers(1))
    rows = g.add("Gather", x.edge, g.add("Add", first, order))
    return _of_network(model, g, Rows.of(g, rows, x.mask))


def _reading(g: Graph, x: Rows, scores: Edge) -> Edge:
    """The order of the instances of every set by score; of equal scores by all features."""
    # Rows without repetition come sorted feature by feature, so their numbers are ranks.
    _, _, ranks = g.add_many("Unique", x.edge, outputs=3, axis=0, sorted=1)
    ranks = g.add("Reshape", ranks, g.add("Concat", x.sets, x.size, axis=0))
    # Of equal numbers TopK takes the earlier one first, as a stable sort does.
    _, by_rank = g.add_many("TopK", ranks, x.size, outputs=2, largest=0)
    _, order = g.add_many(
        "TopK", g.add("GatherElements", scores, by_rank, axis=1), x.size, outputs=2, largest=0
    )
    return g.add("GatherElements", by_rank, order, axis=1)


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
