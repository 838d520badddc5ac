"""Translate the added values of a network that has no graph of its own.

The method `values` is traced symbolically (torch.fx) and translated operator by operator. Modules
become graphs by `capnets.export.layers.layer`. Only operators that treat every instance separately
are translated, so the graph is right for sets of any size; everything else is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.export.layers import layer
from capnets.models.base import AdditiveModel

__all__ = ["trace_values"]

#: ONNX operators by function or method.
OPERATORS: Mapping[Any, str] = {
    **dict.fromkeys((operator.add, torch.add, "add"), "Add"),
    **dict.fromkeys((operator.sub, torch.sub, "sub"), "Sub"),
    **dict.fromkeys((operator.mul, torch.mul, "mul"), "Mul"),
    **dict.fromkeys((operator.truediv, torch.div, "div"), "Div"),
    **dict.fromkeys((operator.neg, torch.neg, "neg"), "Neg"),
    **dict.fromkeys((torch.relu, F.relu, "relu"), "Relu"),
    **dict.fromkeys((torch.tanh, F.tanh, "tanh"), "Tanh"),
    **dict.fromkeys((torch.sigmoid, F.sigmoid, "sigmoid"), "Sigmoid"),
    **dict.fromkeys((F.softplus,), "Softplus"),
    **dict.fromkeys((torch.abs, "abs"), "Abs"),
    **dict.fromkeys((torch.exp, "exp"), "Exp"),
}


class _Values(fx.Tracer):
    traced_func_name = "values"

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return layer.dispatch(type(m)) is not layer.dispatch(nn.Module)


def trace_values(model: AdditiveModel, g: Graph, x: Edge) -> Edge:
    """Continue the graph with the method `values`, applied to rows of instances."""
    try:
        traced = _Values().trace(model)
        edges: dict[Any, Edge] = {}
        for node in traced.nodes:
            edges[node] = _translate(model, g, node, edges, x)
    except (fx.proxy.TraceError, TypeError, NotImplementedError) as error:
        raise _no_graph(model, str(error).splitlines()[0]) from error
    return edges[node]


def _translate(
    model: AdditiveModel, g: Graph, node: fx.Node, edges: dict[Any, Edge], x: Edge
) -> Edge:
    if node.op == "placeholder":
        return x
    if node.op == "get_attr":
        return _constant(model, g, operator.attrgetter(str(node.target))(model))
    arguments = list(node.args)
    if node.op == "output":
        return edges[arguments[0]]
    if node.op == "call_module":
        return layer(model.get_submodule(str(node.target)), g, edges[arguments[0]])
    if node.target is torch.cat and (*arguments[1:], *node.kwargs.values()) in ((-1,), (2,)):
        return g.add("Concat", *(edges[part] for part in arguments[0]), axis=-1)  # type: ignore[union-attr]
    if node.target not in OPERATORS or set(node.kwargs) - {"inplace"}:
        name = getattr(node.target, "__name__", node.target)
        raise _no_graph(model, f"`{name}` may mix the instances of a set")
    inputs = [edges[a] if isinstance(a, fx.Node) else _constant(model, g, a) for a in arguments]
    return g.add(OPERATORS[node.target], *inputs)


def _constant(model: AdditiveModel, g: Graph, value: Any) -> Edge:
    if isinstance(value, Tensor) and value.ndim > 1:
        raise _no_graph(model, f"a constant of shape {tuple(value.shape)} may mix instances")
    return g.constant(value)


def _no_graph(model: AdditiveModel, reason: str) -> InputError:
    return InputError(
        f"there is no ONNX graph for a network of type {type(model).__name__}: {reason}; write one "
        "and register it with `capnets.export.networks.added_values.register`"
    )
