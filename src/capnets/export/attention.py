"""ONNX operators of the attention blocks; they map a batch of sets to a batch of sets."""

from __future__ import annotations

from functools import singledispatch

from torch import Tensor, nn

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.export.rows import Rows, softmax
from capnets.nn.attention import ISAB, MAB, PMA, SAB

__all__ = ["block"]


@singledispatch
def block(module: nn.Module, g: Graph, x: Rows) -> Rows:
    """Continue the graph with an attention block."""
    raise InputError(
        f"there is no ONNX graph for a block of type {type(module).__name__} yet; "
        "write one and register it with `capnets.export.attention.block.register`"
    )


@block.register(nn.Sequential)
def _(module: nn.Sequential, g: Graph, x: Rows) -> Rows:
    for part in module:
        x = block(part, g, x)
    return x


@block.register(SAB)
def _(module: SAB, g: Graph, x: Rows) -> Rows:
    return _attend(module.attend, g, x, x)


@block.register(ISAB)
def _(module: ISAB, g: Graph, x: Rows) -> Rows:
    summary = _attend(module.gather, g, _learned(g, module.points), x)
    return _attend(module.spread, g, x, summary)


@block.register(PMA)
def _(module: PMA, g: Graph, x: Rows) -> Rows:
    return _attend(module.attend, g, _learned(g, module.seeds), x)


def _learned(g: Graph, points: Tensor) -> Rows:
    """Return learned queries as a batch of one set, which products broadcast."""
    return Rows(g.constant(points[0]), g.integers(1), g.integers(points.shape[1]))


def _attend(module: MAB, g: Graph, x: Rows, y: Rows) -> Rows:
    hidden = module.output.in_features
    q = _heads(module, g, module.query, x, order=(0, 2, 1, 3))
    k = _heads(module, g, module.key, y, order=(0, 2, 3, 1))
    v = _heads(module, g, module.value, y, order=(0, 2, 1, 3))
    scores = g.add("Mul", g.add("MatMul", q, k), g.constant(hidden**-0.5))
    mask = None if y.mask is None else g.add("Unsqueeze", y.mask, g.integers(1, 2))
    seen = g.add("Add", q, g.add("MatMul", softmax(g, scores, mask), v))
    together = g.add("Transpose", seen, perm=[0, 2, 1, 3])
    h = g.add("Reshape", together, g.integers(-1, hidden))
    out = g.add("Add", h, g.add("Relu", layer(module.output, g, h)))
    return Rows(out, y.sets, x.size, x.mask)


def _heads(
    module: MAB, g: Graph, linear: nn.Linear, x: Rows, *, order: tuple[int, int, int, int]
) -> Edge:
    cut = g.integers(module.heads, linear.out_features // module.heads)
    shape = g.add("Concat", x.sets, x.size, cut, axis=0)
    return g.add("Transpose", g.add("Reshape", layer(linear, g, x.edge), shape), perm=list(order))
