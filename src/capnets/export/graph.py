"""Build ONNX graphs.

An *edge* is the name of a tensor inside the graph. Weights that are used twice are stored once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor

from capnets.errors import InputError

try:
    import onnx
    from onnx import helper, numpy_helper
except ModuleNotFoundError as error:
    raise InputError(
        f"{error.name} is not installed: `pip install 'capnets[onnx]'` installs what graphs need"
    ) from error

__all__ = ["IR_VERSION", "OPSET", "Edge", "Graph"]

Edge = str
Shape = Sequence[int | str]

# The oldest opset with all operators used here (reductions take their axes as inputs), so that
# ONNX Runtime 1.14 (2023) and later can read the files.
OPSET = 18
IR_VERSION = 8

TYPES = {
    np.dtype(np.float32): onnx.TensorProto.FLOAT,
    np.dtype(np.float64): onnx.TensorProto.DOUBLE,
    np.dtype(np.int64): onnx.TensorProto.INT64,
    np.dtype(np.bool_): onnx.TensorProto.BOOL,
}


class Graph:
    """A graph under construction.

    Examples
    --------
    >>> g = Graph()
    >>> x = g.input("x", ("rows", 3))
    >>> g.output("y", g.add("Relu", x), ("rows", 3))
    >>> [node.op_type for node in g.model("relu", {}).graph.node]
    ['Relu', 'Identity']
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        # A subgraph can use the edges of its parent, so both share names and weights.
        self._weights: dict[Any, onnx.TensorProto] = parent._weights if parent else {}
        self._taken: list[str] = parent._taken if parent else []
        self._number: type[np.generic] = np.float32

    def add(self, operator: str, *inputs: Edge, **attributes: Any) -> Edge:
        """Add an operator with one output."""
        return self.add_many(operator, *inputs, outputs=1, **attributes)[0]

    def add_many(
        self, operator: str, *inputs: Edge, outputs: int, **attributes: Any
    ) -> tuple[Edge, ...]:
        """Add an operator with several outputs."""
        names = tuple(self._name(operator.lower()) for _ in range(outputs))
        self._nodes.append(helper.make_node(operator, inputs, names, name=names[0], **attributes))
        return names

    def constant(self, values: Any, dtype: type[np.generic] | None = None) -> Edge:
        """Add a constant, such as a weight."""
        if isinstance(values, Tensor):
            values = values.detach().cpu().numpy()
        array = np.asarray(values, dtype=dtype or self._number)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._weights:
            self._weights[key] = numpy_helper.from_array(array, self._name("weight"))
        return self._weights[key].name

    @contextmanager
    def wide(self) -> Iterator[None]:
        """Use float64 weights inside the block; their other operands must be float64 too."""
        self._number = np.float64
        try:
            yield
        finally:
            self._number = np.float32

    def integers(self, *values: int) -> Edge:
        """Add a vector of integers, such as axes or a shape."""
        return self.constant(values, np.int64)

    def input(self, name: str, shape: Shape, dtype: type[np.generic] = np.float32) -> Edge:
        """Declare an input; words in its shape are variable sizes."""
        self._inputs.append(helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], shape))
        return name

    def output(
        self, name: str, edge: Edge, shape: Shape, dtype: type[np.generic] = np.float32
    ) -> None:
        """Declare an edge as an output."""
        self._nodes.append(helper.make_node("Identity", [edge], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], shape))

    def loop(self, times: Edge, body: Graph, counter: Edge, result: Edge) -> Edge:
        """Run a subgraph for counter = 0, 1, …; a new first axis holds the results."""
        going = body._name("going")
        inputs = [
            helper.make_tensor_value_info(counter, onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info(going, onnx.TensorProto.BOOL, []),
        ]
        on = body.add("Identity", going)
        outputs = [
            helper.make_tensor_value_info(on, onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, None),
        ]
        inner = helper.make_graph(body._nodes, self._name("body"), inputs, outputs)
        return self.add("Loop", times, self.constant(True, np.bool_), body=inner)

    def scan(
        self, body: Graph, names: tuple[Edge, Edge], result: Edge, state: Edge, rows: Edge
    ) -> tuple[Edge, Edge]:
        """Run a subgraph on (state, row) for every row; its result is the next state.

        Returns the last state, and all states with a new first axis. Numbers are float64.
        """
        every = body.add("Identity", result)
        double = onnx.TensorProto.DOUBLE
        inputs = [helper.make_tensor_value_info(name, double, None) for name in names]
        outputs = [helper.make_tensor_value_info(name, double, None) for name in (result, every)]
        inner = helper.make_graph(body._nodes, self._name("body"), inputs, outputs)
        last, states = self.add_many("Scan", state, rows, outputs=2, body=inner, num_scan_inputs=1)
        return last, states

    def model(self, name: str, about: dict[str, str]) -> onnx.ModelProto:
        """Return the finished, checked graph with its metadata."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, list(self._weights.values())
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="capnets",
        )
        helper.set_model_props(model, about)
        onnx.checker.check_model(model, full_check=True)
        return model

    def cast(self, edge: Edge, dtype: type[np.generic]) -> Edge:
        """Cast an edge to another type."""
        return self.add("Cast", edge, to=TYPES[np.dtype(dtype)])

    def range(self, count: Edge) -> Edge:
        """Add the integers from 0 to `count` - 1."""
        return self.add("Range", self.constant(0, np.int64), count, self.constant(1, np.int64))

    def fresh(self, word: str) -> Edge:
        """Return a new name for an edge without an operator, such as a loop counter."""
        return self._name(word)

    def _name(self, word: str) -> Edge:
        self._taken.append(word)
        return f"{word}_{len(self._taken)}"
