"""Open graphs in ONNX Runtime; check the instances they are given."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from torch import Tensor

from capnets.errors import InputError
from capnets.sets import Array

__all__ = [
    "as_instances",
    "check_answer",
    "check_finite",
    "check_shape",
    "no_memory",
    "open_graph",
]

FeatureShape = tuple[int | str, ...]

#: ONNX Runtime's names for the dtypes of states.
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}

#: Serialized key of external data in a graph: field 1 of an entry, eight characters.
EXTERNAL = b"\x0a\x08location"


def open_graph(graph: bytes, *, name: str, threads: int = 1) -> Any:
    """Open an ONNX Runtime session on the CPU.

    One thread is fastest for small networks; more only help with thousands of sets.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise InputError(
            "onnxruntime is not installed: `pip install 'capnets[onnx]'` brings it"
        ) from error
    if threads < 1:
        raise InputError(f"threads must be at least 1, not {threads}")
    if EXTERNAL in graph:  # ONNX Runtime would look for it in the working directory
        raise InputError(f"the graph {name} keeps its weights in another file; export it again")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors are raised; warnings concern only ONNX Runtime
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no base class for its errors
        reason = str(error).splitlines()[0]
        raise InputError(
            f"ONNX Runtime cannot read the graph {name}: {reason}; export it again"
        ) from error


def no_memory(session: Any, sets: int) -> Array:
    """Return the initial state of the graphs `step` and `chunk`."""
    state = session.get_inputs()[1]
    return np.zeros((sets, state.shape[1]), dtype=TYPES[state.type])


def check_shape(found: tuple[int, ...], expected: FeatureShape, *, smallest: int = 1) -> None:
    """Raise an error if instances do not have the shape that the network reads.

    Variable sizes must be at least `smallest`.
    """
    fits = len(found) == len(expected) and all(
        f >= smallest if isinstance(e, str) else f == e
        for f, e in zip(found, expected, strict=True)
    )
    if not fits:
        varying = [str(smallest) for e in expected if isinstance(e, str)]
        least = f", of at least {' x '.join(varying)}" if varying else ""
        raise InputError(
            f"instances have shape {_words(found)}, "
            f"but this network reads {_words(expected)}{least}"
        )


def as_instances(instances: Any) -> Array:
    """Convert instances to a float32 array."""
    if type(instances) is not np.ndarray and isinstance(instances, Tensor):
        instances = instances.detach().cpu().float()  # numpy lacks some dtypes of torch
    try:
        return np.asarray(instances, dtype=np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"instances must be an array of numbers: {error}") from error


def check_finite(x: Array) -> None:
    """Raise an error at the first NaN or infinite feature."""
    if isfinite(np.vdot(x, x)):  # twice as fast as testing each number
        return
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise InputError(
            f"instances[{', '.join(map(str, where))}] is {x[where]}; "
            "replace or drop missing and infinite values first"
        )


def check_answer(x: Array, values: Array, memory: Array, *, first: int = 0) -> None:
    """Raise an error for finite instances that made the network overflow.

    `first` is the position of the first row of x in the user's input.
    """
    if not (np.isfinite(values).all() and np.isfinite(memory).all()):
        where = np.unravel_index(int(np.abs(x).argmax()), x.shape)
        row, *rest = (int(i) for i in where)
        place = ", ".join(map(str, (first + row, *rest)))
        raise InputError(
            f"instances[{place}] is {x[where]:.3g}, and numbers of the network become too large; "
            "scale such features down or drop the instance. Nothing was read"
        )


def _words(shape: FeatureShape) -> str:
    return " x ".join(map(str, shape)) + (" features" if len(shape) == 1 else "")
