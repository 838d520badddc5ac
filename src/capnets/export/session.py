"""Opening graphs in ONNX Runtime, and what every reader of instances refuses."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array

__all__ = ["as_instances", "check_finite", "check_shape", "open_graph"]

FeatureShape = tuple[int | str, ...]


def open_graph(graph: bytes, *, name: str, threads: int = 1) -> Any:
    """An ONNX Runtime session on the processor.

    One thread is the quickest for networks this small; more only help with thousands of sets.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise InputError(
            "onnxruntime is not installed: `pip install 'capnets[onnx]'` brings it"
        ) from error
    if threads < 1:
        raise InputError(f"threads must be at least 1, not {threads}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = (
        3  # errors are raised; warnings are about ONNX Runtime's own affairs
    )
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no base class for its errors
        reason = str(error).splitlines()[0]
        raise InputError(
            f"ONNX Runtime cannot read the graph {name}: {reason}; export it again"
        ) from error


def check_shape(found: tuple[int, ...], expected: FeatureShape) -> None:
    """Refuse instances of another shape than the network was built for."""
    fits = len(found) == len(expected) and all(
        isinstance(e, str) or f == e for f, e in zip(found, expected, strict=True)
    )
    if not fits:
        raise InputError(
            f"instances have shape {_words(found)}, but this network reads {_words(expected)}"
        )


def as_instances(instances: Any) -> Array:
    """Whatever was given as an array of the type that graphs read."""
    try:
        return np.asarray(instances, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"instances must be an array of numbers: {error}") from error


def check_finite(x: Array) -> None:
    """Refuse NaN and infinite features, and say where they are.

    Called for every streamed instance: nearly always the product of the features with themselves
    shows that nothing is wrong, in half the time of looking at each of them.
    """
    if isfinite(np.vdot(x, x)):
        return
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise InputError(
            f"instances[{', '.join(map(str, where))}] is {x[where]}; "
            "replace or drop missing and infinite values first"
        )


def _words(shape: FeatureShape) -> str:
    return " x ".join(map(str, shape)) + (" features" if len(shape) == 1 else "")
