"""ONNX operators of the modules that are applied to each instance separately.

`layer(module, g, x)` continues the graph `g` after the edge `x`, whose first axis is *rows*: all
instances of all sets. A new module type needs one registered function here, which may call `layer`
for its submodules.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.export.graph import Edge, Graph
from capnets.nn.encoders import ConvEncoder, Standardize
from capnets.nn.monotone import Bend, MonotoneLinear
from capnets.nn.projection import Project
from capnets.nn.trees import DEPTH, GRID, Trees

__all__ = ["layer"]


@singledispatch
def layer(module: nn.Module, g: Graph, x: Edge) -> Edge:
    """Apply a module to every row."""
    raise InputError(
        f"there is no ONNX graph for a module of type {type(module).__name__} yet; "
        "write one and register it with `capnets.export.layers.layer.register`"
    )


@layer.register(nn.Identity)
def _(module: nn.Identity, g: Graph, x: Edge) -> Edge:
    return x


@layer.register(nn.Sequential)
def _(module: nn.Sequential, g: Graph, x: Edge) -> Edge:
    for part in module:
        x = layer(part, g, x)
    return x


@layer.register(nn.Linear)
def _(module: nn.Linear, g: Graph, x: Edge) -> Edge:
    # One fused operator on rows; on sets x instances x features it would take a product and a sum.
    bias: Tensor | None = module.bias  # may be None, despite torch's annotation
    weights = [module.weight] if bias is None else [module.weight, bias]
    return g.add("Gemm", x, *map(g.constant, weights), transB=1)


@layer.register(MonotoneLinear)
def _(module: MonotoneLinear, g: Graph, x: Edge) -> Edge:
    bias: Tensor | None = module.bias
    weights = [module.weights] if bias is None else [module.weights, bias]
    return g.add("Gemm", x, *map(g.constant, weights), transB=1)


@layer.register(Bend)
def _(module: Bend, g: Graph, x: Edge) -> Edge:
    below = g.add("Min", x, g.constant(module.at))
    return g.add("Concat", below, g.add("Sub", x, below), axis=-1)


@layer.register(nn.ReLU)
def _(module: nn.ReLU, g: Graph, x: Edge) -> Edge:
    return g.add("Relu", x)


@layer.register(nn.Tanh)
def _(module: nn.Tanh, g: Graph, x: Edge) -> Edge:
    return g.add("Tanh", x)


@layer.register(Standardize)
def _(module: Standardize, g: Graph, x: Edge) -> Edge:
    return g.add("Mul", g.add("Sub", x, g.constant(module.mean)), g.constant(module.scale))


@layer.register(Project)
def _(module: Project, g: Graph, x: Edge) -> Edge:
    centred = g.add("Sub", x, g.constant(module.mean))
    return g.add("MatMul", centred, g.constant(module.components.T))


@layer.register(Trees)
def _(module: Trees, g: Graph, x: Edge) -> Edge:
    grid, (trees, splits) = g.constant(GRID), module.features.shape
    rows = g.add("Mul", g.add("Round", g.add("Div", x, grid)), grid)
    first, one, two = np.arange(trees), g.integers(1), g.integers(2)
    count = g.add("Concat", g.add("Shape", x, start=0, end=1), g.integers(trees), axis=0)
    node = g.add("Expand", g.integers(0), count)
    for _ in range(DEPTH):
        split = g.add("Add", node, g.constant(first * splits, np.int64))
        feature = g.add("Gather", g.constant(module.features.flatten(), np.int64), split)
        value = g.add("GatherElements", rows, feature, axis=1)
        threshold = g.add("Gather", g.constant(module.thresholds.flatten()), split)
        right = g.cast(g.add("Greater", value, threshold), np.int64)
        node = g.add("Add", g.add("Mul", node, two), g.add("Add", right, one))
    reached = g.add("Add", node, g.constant(first * (splits + 1) - splits, np.int64))
    leaves = g.add("Gather", g.constant(module.leaves.flatten(0, 1)), reached)
    return g.add("ReduceSum", leaves, g.integers(1), keepdims=0)


@layer.register(ConvEncoder)
def _(module: ConvEncoder, g: Graph, x: Edge) -> Edge:
    pictures = layer(module.convolutions, g, x)
    return layer(module.output, g, g.add("Flatten", pictures, axis=1))


@layer.register(nn.Conv2d)
def _(module: nn.Conv2d, g: Graph, x: Edge) -> Edge:
    if isinstance(module.padding, str):
        raise InputError("cannot export a convolution with padding given as a string; use numbers")
    weights = [module.weight] if module.bias is None else [module.weight, module.bias]
    return g.add(
        "Conv",
        x,
        *map(g.constant, weights),
        kernel_shape=list(module.kernel_size),
        strides=list(module.stride),
        pads=list(module.padding) * 2,
        dilations=list(module.dilation),
        group=module.groups,
    )


@layer.register(nn.MaxPool2d)
def _(module: nn.MaxPool2d, g: Graph, x: Edge) -> Edge:
    kernel, stride, padding = (
        [v, v] if isinstance(v, int) else list(v)
        for v in (module.kernel_size, module.stride, module.padding)
    )
    return g.add(
        "MaxPool", x, kernel_shape=kernel, strides=stride, pads=padding * 2,
        ceil_mode=int(module.ceil_mode),
    )  # fmt: skip


@layer.register(nn.AdaptiveMaxPool2d)
def _(module: nn.AdaptiveMaxPool2d, g: Graph, x: Edge) -> Edge:
    size: Any = module.output_size
    for axis, parts in zip((2, 3), size if isinstance(size, tuple) else (size, size), strict=True):
        x = x if parts is None else _pool(x, g, axis, parts)
    return x


def _pool(x: Edge, g: Graph, axis: int, parts: int) -> Edge:
    """Take the maxima of `parts` windows of one axis of any length.

    Window i runs from floor(i n / parts) to ceil((i + 1) n / parts). Windows may overlap and their
    stride varies, which ONNX's own pooling does not support.
    """
    n = g.add("Shape", x, start=axis, end=axis + 1)
    cut, on, axes = g.integers(parts), g.integers(parts - 1), g.integers(axis)
    maxima = []
    for i in range(parts):
        start = g.add("Div", g.add("Mul", n, g.integers(i)), cut)
        end = g.add("Div", g.add("Add", g.add("Mul", n, g.integers(i + 1)), on), cut)
        window = g.add("Slice", x, start, end, axes)
        maxima.append(g.add("ReduceMax", window, axes, keepdims=1))
    return g.add("Concat", *maxima, axis=axis)
