"""ONNX operators of the cells.

They map features and the previous state to outputs and the next state. Features have the shape
size x sets x features, which ONNX's recurrent operators expect. A new cell needs one function here.

Streams can be arbitrarily long, so counts and sums are float64: a float32 count cannot grow beyond
2^24 = 16,777,216.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import torch
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.independent import IndependentCell

__all__ = ["cell", "state_type", "step"]


@singledispatch
def cell(module: Cell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    """Continue the graph with a cell.

    Parameters
    ----------
    e
        Features, size x sets x features.
    state
        Previous state, sets x state; None at the start of the sets.

    Returns
    -------
    z
        Outputs, (size x sets) x out_features, grouped by position in the set.
    state
        Next state, sets x state.
    """
    raise InputError(
        f"there is no ONNX graph for a cell of type {type(module).__name__} yet; "
        "write one and register it with `capnets.export.cells.cell.register`"
    )


@cell.register(RNNCell)
def _(module: RNNCell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    weights = [module.weight_input, module.weight_state, module.bias, torch.zeros_like(module.bias)]
    z, last = _recurrent("RNN", g, e, weights, [_first(g, state)])
    return z, _squeeze(g, last)


@cell.register(GRUCell)
def _(module: GRUCell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    weights = _torch_weights(module.gru, gates=[1, 0, 2])
    z, last = _recurrent("GRU", g, e, weights, [_first(g, state)], linear_before_reset=1)
    return z, _squeeze(g, last)


@cell.register(LSTMCell)
def _(module: LSTMCell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    weights = _torch_weights(module.lstm, gates=[0, 3, 1, 2])
    before = [""]
    if state is not None:
        before = [*g.add_many("Split", _first(g, state), outputs=2, axis=2, num_outputs=2)]
    z, *last = _recurrent("LSTM", g, e, weights, before)
    return z, _squeeze(g, g.add("Concat", *last, axis=2))


@cell.register(ContextCell)
def _(module: ContextCell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    hidden = module.state_features
    rows = g.add("Reshape", e, g.integers(-1, module.in_features))
    shape = g.add("Concat", g.add("Shape", e, end=2), g.integers(hidden), axis=0)
    kinds = g.add("Reshape", g.add("Softmax", layer(module.kind, g, rows), axis=1), shape)
    first = g.constant(0, np.int64)
    after = g.add("ReduceSum", kinds, g.integers(0), keepdims=0)
    if state is None:
        before = g.add("CumSum", kinds, first, exclusive=1)
    else:  # prepend it as an instance: adding it to every sum would cost twice as much
        front = g.cast(_first(g, state), np.float32)
        counts = g.add("CumSum", g.add("Concat", front, kinds, axis=0), first)
        before = g.add("Slice", counts, g.integers(0), g.integers(-1), g.integers(0))
        after = g.add("Add", state, g.cast(after, np.float64))
    before = g.add("Reshape", before, g.integers(-1, hidden))
    product = g.add("Mul", g.add("Relu", _gate(module, g, rows)), before)
    return g.add("Concat", rows, product, axis=1), after


@cell.register(IndependentCell)
def _(module: IndependentCell, g: Graph, e: Edge, state: Edge | None) -> tuple[Edge, Edge]:
    rows = g.add("Reshape", e, g.integers(-1, module.in_features))
    if state is None:
        shape = g.add("Concat", g.add("Shape", e, start=1, end=2), g.integers(0), axis=0)
        state = g.add("Expand", g.constant(np.zeros((1, 0))), shape)
    return rows, state


@singledispatch
def step(module: Cell, g: Graph, e: Edge, state: Edge) -> tuple[Edge, Edge]:
    """Continue the graph with one step of a cell; e, z and both states have one row per set.

    Cells register a function here if it needs fewer operators; each costs about a microsecond.
    """
    return cell(module, g, g.add("Unsqueeze", e, g.integers(0)), state)


@step.register(LSTMCell)
def _(module: LSTMCell, g: Graph, e: Edge, state: Edge) -> tuple[Edge, Edge]:
    # For a single instance, elementary operators are faster than the recurrent one.
    of_input, of_state, *biases = _torch_weights(module.lstm, gates=[0, 1, 3, 2])
    before, memory = g.add_many("Split", state, outputs=2, axis=1, num_outputs=2)
    both = g.add("Concat", e, before, axis=1)
    weights = g.constant(torch.cat([of_input, of_state], dim=1))
    gates = g.add("Gemm", both, weights, g.constant(sum(biases)), transB=1)
    hidden = of_state.shape[1]
    kfo, offered = g.add_many("Split", gates, g.integers(3 * hidden, hidden), outputs=2, axis=1)
    k, f, o = g.add_many("Split", g.add("Sigmoid", kfo), outputs=3, axis=1, num_outputs=3)
    admitted = g.add("Mul", k, g.add("Tanh", offered))
    memory = g.add("Add", g.add("Mul", f, memory), admitted)
    z = g.add("Mul", o, g.add("Tanh", memory))
    return z, g.add("Concat", z, memory, axis=1)


@step.register(ContextCell)
def _(module: ContextCell, g: Graph, e: Edge, state: Edge) -> tuple[Edge, Edge]:
    kinds = g.add("Softmax", layer(module.kind, g, e), axis=1)
    product = g.add("Mul", g.add("Relu", _gate(module, g, e)), g.cast(state, np.float32))
    after = g.add("Add", state, g.cast(kinds, np.float64))
    return g.add("Concat", e, product, axis=1), after


@singledispatch
def state_type(module: Cell) -> type[np.generic]:
    """Return the type of the numbers in the state of a cell."""
    return np.float32


@state_type.register(ContextCell)
def _(module: ContextCell) -> type[np.generic]:
    return np.float64


def _gate(module: ContextCell, g: Graph, e: Edge) -> Edge:
    weight, bias = module.gate_per_unit()
    return g.add("Gemm", e, g.constant(weight), g.constant(bias), transB=1)


def _recurrent(
    operator: str,
    g: Graph,
    e: Edge,
    weights: list[Tensor],
    before: list[Edge],
    **attributes: int,
) -> tuple[Edge, ...]:
    """Add a recurrent ONNX operator; the weights have their gates in ONNX order."""
    of_input, of_state, bias_input, bias_state = weights
    hidden = of_state.shape[1]
    z, *last = g.add_many(
        operator,
        e,
        g.constant(of_input[None]),  # new axis: directions (one)
        g.constant(of_state[None]),
        g.constant(torch.cat([bias_input, bias_state])[None]),
        "",  # no sequence lengths: outputs after the end of a set are never used
        *before,
        outputs=3 if operator == "LSTM" else 2,
        hidden_size=hidden,
        **attributes,
    )
    return g.add("Reshape", z, g.integers(-1, hidden)), *last


def _torch_weights(module: nn.RNNBase, *, gates: list[int]) -> list[Tensor]:
    """Return the weights of a torch module, with gates in ONNX order."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    cut = [getattr(module, name).chunk(len(gates)) for name in names]
    return [torch.cat([parts[i] for i in gates]) for parts in cut]


def _first(g: Graph, state: Edge | None) -> Edge:
    return "" if state is None else g.add("Unsqueeze", state, g.integers(0))


def _squeeze(g: Graph, state: Edge) -> Edge:
    return g.add("Squeeze", state, g.integers(0))
