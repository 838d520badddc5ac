"""ONNX operators of the aggregations.

They map decoded numbers and running sums to added values and new sums. Sums are float64, because
streams can be arbitrarily long; see `capnets.export.cells`.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import torch

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.export.rows import Rows
from capnets.models.aggregations import Aggregation, Any, Last, Mean, MeanAndSum, Sum
from capnets.models.aggregations.mean import BOUND

__all__ = ["aggregate"]


@singledispatch
def aggregate(
    module: Aggregation, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    """Continue the graph with an aggregation.

    Parameters
    ----------
    decoded
        Decoded numbers, one row per instance, ordered instance by instance as cells give them.
    x
        The instances that the rows belong to.
    state
        Sums over the previous instances, sets x memory, in float64; None at the start of the sets.

    Returns
    -------
    values
        Added values in units, in the order of `decoded`.
    state
        The new sums; None if there are none.
    """
    raise InputError(
        f"there is no ONNX graph for an aggregation of type {type(module).__name__} yet; "
        "write one and register it with `capnets.export.aggregations.aggregate.register`"
    )


@aggregate.register(Sum)
def _(
    module: Sum, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    return decoded, None


@aggregate.register(Mean)
def _(
    module: Mean, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    u, log_w = g.add_many("Split", decoded, outputs=2, axis=1, num_outputs=2)
    u = g.add("Mul", u, g.constant(module.scale))
    bound = g.constant(BOUND)
    w = g.add("Exp", g.add("Mul", g.add("Tanh", g.add("Div", log_w, bound)), bound))
    both = g.add("Concat", g.add("Mul", w, u), w, axis=1)
    before, after = _sums(g, x, both, 2 * module.outputs, state)
    with torch.no_grad():
        c = module.log_prior.exp()
        prior = torch.cat([c * module.empty(c), c])
    before = _with(g, "Add", before, prior, state)
    top, bottom = g.add_many("Split", before, outputs=2, axis=1, num_outputs=2)
    if state is not None:
        u, w = g.cast(u, np.float64), g.cast(w, np.float64)
    disagreement = g.add("Sub", u, g.add("Div", top, bottom))
    share = g.add("Div", w, g.add("Add", bottom, w))
    return _narrow(g, g.add("Mul", share, disagreement), state), after


@aggregate.register(MeanAndSum)
def _(
    module: MeanAndSum, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    sizes = g.integers(2 * module.outputs, module.outputs)
    beliefs, summands = g.add_many("Split", decoded, sizes, outputs=2, axis=1)
    values, after = aggregate(module.mean, g, beliefs, x, state)
    return g.add("Add", values, summands), after


@aggregate.register(Any)
def _(
    module: Any, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    before, after = _sums(g, x, g.add("Softplus", decoded), module.outputs, state)
    with torch.no_grad():
        leak = module.leak(torch.zeros(module.outputs))
    missed = g.add("Exp", g.add("Neg", _with(g, "Add", before, leak, state)))
    return g.add("Mul", g.add("Sigmoid", decoded), _narrow(g, missed, state)), after


@aggregate.register(Last)
def _(
    module: Last, g: Graph, decoded: Edge, x: Rows, state: Edge | None
) -> tuple[Edge, Edge | None]:
    d = g.add("Mul", decoded, g.constant(module.scale))
    if state is None:
        shape = g.add("Concat", x.sets, g.integers(module.outputs), axis=0)
        first = g.add("Expand", g.constant(0.0), shape)
    else:
        d, first = g.cast(d, np.float64), state
        if not x.size:
            return _narrow(g, g.add("Sub", d, state), state), d
    # Rows are ordered instance by instance: above those of an instance are those before it.
    levels = g.add("Concat", first, d, axis=0)
    rows = g.add("Shape", d, end=1)
    before = g.add("Slice", levels, g.integers(0), rows, g.integers(0))
    after = None
    if state is not None:
        after = g.add("Slice", levels, rows, g.add("Shape", levels, end=1), g.integers(0))
    return _narrow(g, g.add("Sub", d, before), state), after


def _sums(
    g: Graph, x: Rows, rows: Edge, width: int, state: Edge | None
) -> tuple[Edge, Edge | None]:
    """Return the sum of the rows before each row, and the sums over all rows of each set."""
    if state is not None:
        rows = g.cast(rows, np.float64)
        if not x.size:
            return state, g.add("Add", state, rows)
    cube = g.add("Reshape", rows, g.add("Concat", x.size, x.sets, g.integers(width), axis=0))
    before = g.add("CumSum", cube, g.constant(0, np.int64), exclusive=1)
    after = None
    if state is not None:
        before = g.add("Add", before, state)
        after = g.add("Add", g.add("ReduceSum", cube, g.integers(0), keepdims=0), state)
    return g.add("Reshape", before, g.integers(-1, width)), after


def _with(g: Graph, operator: str, edge: Edge, numbers: torch.Tensor, state: Edge | None) -> Edge:
    """Combine an edge with constants of its precision."""
    return g.add(operator, edge, g.constant(numbers, np.float32 if state is None else np.float64))


def _narrow(g: Graph, edge: Edge, state: Edge | None) -> Edge:
    return edge if state is None else g.cast(edge, np.float32)
