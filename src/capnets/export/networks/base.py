"""Define the graph functions that networks register, and their shared parts.

`prediction` returns sets x outputs, `added_values` sets x size x outputs (values of padding are
ignored); `advance` continues from a state. A network that reads whole sets registers `predict`, in
its own unit, and `predict_prefixes` if a loop over prefixes would be slow. A network that reads
step by step registers `advance` and `memory`, and `prediction` if there is a faster way than
summing added values.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.rows import Rows
from capnets.export.traced import trace_values
from capnets.models.base import AdditiveModel, SetModel, SteppingModel

__all__ = [
    "Memory",
    "added_values",
    "advance",
    "from_baseline",
    "from_covariates",
    "memory",
    "predict",
    "predict_prefixes",
    "prediction",
    "predicts_apart",
    "read",
    "scaled",
]


class Memory(NamedTuple):
    """The state of a network between two calls: its size and type."""

    features: int
    dtype: type[np.generic]


@singledispatch
def prediction(model: SetModel, g: Graph, x: Rows) -> Edge:
    """Predict whole sets."""
    return scaled(model, g, predict(model, g, read(model, g, x)))


@singledispatch
def added_values(model: SetModel, g: Graph, x: Rows) -> Edge:
    """Compute added values as differences between the predictions of prefixes."""
    prefixes = scaled(model, g, predict_prefixes(model, g, read(model, g, x)))
    if not bool(model.constant.any()):
        # Padding by 1 in front and -1 at the end shifts by one, with a leading 0.
        return g.add("Sub", prefixes, g.add("Pad", prefixes, g.integers(0, 1, 0, 0, -1, 0)))
    shape = g.add("Concat", x.sets, g.integers(1, 1), axis=0)
    first = g.add("Expand", g.constant(model.constant[None, None]), shape)
    others = g.add("Slice", prefixes, g.integers(0), g.integers(-1), g.integers(1))
    return g.add("Sub", prefixes, g.add("Concat", first, others, axis=1))


# Networks that read sets as a whole, in their own unit -------------------------------------------


@singledispatch
def predict(model: SetModel, g: Graph, x: Rows) -> Edge:
    """Predict whole sets from the output of `read`, in the unit of the network."""
    raise InputError(
        f"there is no ONNX graph for a network of type {type(model).__name__} yet; "
        "write one and register it with `capnets.export.networks.predict.register`"
    )


@singledispatch
def predict_prefixes(model: SetModel, g: Graph, x: Rows) -> Edge:
    """Predict all prefixes, sets x size x outputs, in a loop over their lengths.

    No mask is needed, because padding comes after every prefix.
    """
    sets, body = x.padded(g), Graph(parent=g)
    counter = body.fresh("counter")
    length = body.add("Add", counter, body.integers(1))
    prefix = body.add("Slice", sets, body.integers(0), length, body.integers(1))
    result = predict(model, body, Rows.of(body, prefix))
    return g.add("Transpose", g.loop(x.count(g), body, counter, result), perm=[1, 0, 2])


# Networks that read step by step ----------------------------------------------------------------


@singledispatch
def predicts_apart(model: SetModel) -> bool:
    """Return whether predictions cost less without added values."""
    return prediction.dispatch(type(model)) is not prediction.dispatch(SteppingModel)


@singledispatch
def memory(model: SetModel) -> Memory:
    """Return the size and type of the state that `advance` takes and returns."""
    raise InputError(f"a network of type {type(model).__name__} has no state between calls")


@memory.register(SteppingModel)
def _(model: SteppingModel) -> Memory:
    return Memory(model.state_features, np.float32)


@singledispatch
def advance(model: SetModel, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    """Compute the added values of the next instances of every set, and the next state."""
    raise InputError(
        f"there is no ONNX graph for a network of type {type(model).__name__} yet; "
        "write one and register it with `capnets.export.networks.base.advance.register`"
    )


@added_values.register(SteppingModel)
def _(model: SteppingModel, g: Graph, x: Rows) -> Edge:
    return advance(model, g, x, None)[0]


@added_values.register(AdditiveModel)
def _(model: AdditiveModel, g: Graph, x: Rows) -> Edge:
    values = x.become(trace_values(model, g, read(model, g, x).edge))
    return values.become(scaled(model, g, values.edge)).padded(g)


@prediction.register(AdditiveModel)
@prediction.register(SteppingModel)
def _(model: SetModel, g: Graph, x: Rows) -> Edge:
    values = Rows.of(g, added_values(model, g, x), x.mask).blank(g)
    return from_baseline(model, g, values.padded(g))


# Shared -----------------------------------------------------------------------------------------


def read(model: SetModel, g: Graph, x: Rows) -> Rows:
    """Apply the network's inputs to the instances, without NaN in the padding."""
    features = x.become(layer(model.inputs, g, x.edge))
    # Additive networks read padding last, so it changes nothing. Other networks give it a weight of
    # 0, but 0 times NaN is NaN.
    return features if model.additive else features.blank(g)


def from_baseline(model: SetModel, g: Graph, values: Edge) -> Edge:
    """Sum added values, sets x size x outputs, and add the constant part of the baseline."""
    total = g.add("ReduceSum", values, g.integers(1), keepdims=0)
    if not bool(model.constant.any()):
        return total
    return g.add("Add", total, g.constant(model.constant))


@singledispatch
def from_covariates(model: SetModel, g: Graph, covariates: Edge) -> Edge:
    """Compute the part of the baseline that depends on covariates, sets x outputs."""
    part = model.covariate_baseline
    assert part is not None
    return scaled(model, g, layer(part.decoder, g, layer(part.inputs, g, covariates)))


def scaled(model: SetModel, g: Graph, values: Edge) -> Edge:
    """Convert from the unit of the network to that of the label."""
    return g.add("Mul", values, g.constant(model.unit))
