"""Build the ONNX graphs of a network, operator by operator, from its modules.

Graphs are not traced, so the number and size of the sets stay variable. (torch's exporter fixes the
number of instances of a recurrent network.)

=========  ==============================================  ========================
graph      inputs -> outputs                               of which networks
=========  ==============================================  ========================
`sets`     instances, mask -> prediction, added_values     all
`predict`  instances, mask -> prediction                   where it costs less than `sets`
`step`     instance, state -> value, next_state            capacity networks
`chunk`    instances, state -> added_values, next_state    capacity networks
=========  ==============================================  ========================

A network with covariates reads them as another input, `covariates` (sets x covariates); it has no
graphs for streams.

ONNX Runtime computes every output of a graph, requested or not. The graph `predict` therefore omits
the predictions of all prefixes (networks that are not additive) and their potentials (C-Potential).
The initial state is zero.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import numpy as np
from torch import nn

from capnets.errors import InputError
from capnets.export import networks
from capnets.export.graph import Edge, Graph
from capnets.export.rows import Rows
from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.nn.encoders import ConvEncoder

__all__ = [
    "PORTS",
    "SMALLEST",
    "feature_shape",
    "fingerprint",
    "graphs",
    "in_use",
    "instance_shape",
    "ports",
    "streams",
]

#: Names of the inputs and outputs of each graph.
PORTS = {
    "sets": (["instances", "mask"], ["prediction", "added_values"]),
    "predict": (["instances", "mask"], ["prediction"]),
    "step": (["instance", "state"], ["value", "next_state"]),
    "chunk": (["instances", "state"], ["added_values", "next_state"]),
}


#: Minimum height and width of images in pixels, as required by `ConvEncoder`.
SMALLEST = 4


def graphs(model: SetModel) -> dict[str, bytes]:
    """Build all graphs of a network, by name, as file contents."""
    model = in_use(model)
    builders = {"sets": _sets}
    builders |= {"step": _step, "chunk": _chunk} if streams(model) else {}
    builders |= {"predict": _predict} if networks.predicts_apart(model) else {}
    about = {
        "capnets.fingerprint": fingerprint(model),
        "capnets.additive": json.dumps(model.additive),
        "capnets.streams": json.dumps(streams(model)),
    }
    if bool(model.constant.any()):
        about["capnets.baseline"] = json.dumps(model.constant.tolist())
    if any(isinstance(size, str) for size in feature_shape(model)):
        about["capnets.smallest"] = str(SMALLEST)
    built = {}
    for name, build in builders.items():
        g = Graph()
        build(model, g)
        built[name] = g.model(name, about).SerializeToString(deterministic=True)
    return built


def in_use(model: SetModel) -> SetModel:
    """Return a copy that computes as graphs do: CPU, float32, evaluation mode."""
    return copy.deepcopy(model).cpu().float().eval()


def fingerprint(model: SetModel) -> str:
    """Return a digest of the weights and settings of a network."""
    about = [(name, type(part).__name__, _settings(part)) for name, part in model.named_modules()]
    digest = hashlib.sha256(repr(about).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(repr((name, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _settings(part: nn.Module) -> Any:
    """Return the settings of a module: activation, sort key, strides, heads."""
    if type(part).__module__.startswith("torch."):
        return part.extra_repr()  # more stable across versions than its attributes
    plain = (bool, int, float, str, tuple)
    public = {key: value for key, value in vars(part).items() if key[0] != "_"}
    public.pop("training")
    return sorted((key, value) for key, value in public.items() if isinstance(value, plain))


def ports(model: SetModel, name: str) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs of a graph of a network."""
    inputs, outputs = PORTS[name]
    return [inputs[0], *["covariates"] * bool(model.covariates), *inputs[1:]], outputs


def streams(model: SetModel) -> bool:
    """Return whether a network has graphs that read a set piece by piece."""
    return model.steps and not model.covariates


def instance_shape(model: SetModel) -> tuple[int | str, ...]:
    """Return the shape of one instance without covariates; words are variable sizes."""
    shape = feature_shape(model)
    return (int(shape[0]) - model.covariates,) if model.covariates else shape


def feature_shape(model: SetModel) -> tuple[int | str, ...]:
    """Return the shape of one instance as the network reads it; words are variable sizes."""
    if isinstance(model, Ensemble):
        return feature_shape(model.each[0])
    for part in (model.inputs, getattr(model, "encoder", None)):
        while isinstance(part, nn.Sequential) and len(part):
            part = part[0]
        if isinstance(part, ConvEncoder):
            return part.channels, "height", "width"
    if model.features_in is None:
        raise InputError("this network does not declare its number of features (in_features)")
    return (model.features_in,)


def _sets(model: SetModel, g: Graph) -> None:
    x, level = _inputs(model, g)
    values = Rows.of(g, networks.added_values(model, g, x), x.mask).blank(g).padded(g)
    if model.additive:
        prediction = networks.from_baseline(model, g, values)
        g.output("prediction", _above(g, level, prediction), ("sets", model.outputs))
    else:
        _output_prediction(model, g, x, level)
    g.output("added_values", values, ("sets", "size", model.outputs))


def _predict(model: SetModel, g: Graph) -> None:
    _output_prediction(model, g, *_inputs(model, g))


def _chunk(model: SetModel, g: Graph) -> None:
    x = Rows.of(g, g.input("instances", ("sets", "size", *feature_shape(model))))
    _advance(model, g, x, "added_values", "size")


def _step(model: SetModel, g: Graph) -> None:
    _advance(model, g, Rows(g.input("instance", ("sets", *feature_shape(model)))), "value")


def _advance(model: SetModel, g: Graph, x: Rows, name: str, *size: str) -> None:
    features, dtype = networks.memory(model)
    state = g.input("state", ("sets", features), dtype)
    values, after = networks.advance(model, g, x, state)
    g.output(name, values, ("sets", *size, model.outputs))
    g.output("next_state", after, ("sets", features), dtype)


def _output_prediction(model: SetModel, g: Graph, x: Rows, level: Edge | None) -> None:
    prediction = _above(g, level, networks.prediction(model, g, x))
    if not model.additive:  # it has no prediction for an empty set
        some = g.add("Greater", x.sizes(g), g.integers(0))
        prediction = g.add("Where", some, prediction, g.constant(np.nan))
    g.output("prediction", prediction, ("sets", model.outputs))


def _above(g: Graph, level: Edge | None, prediction: Edge) -> Edge:
    """Add the part of the baseline that depends on covariates, if there is one."""
    return prediction if level is None else g.add("Add", prediction, level)


def _inputs(model: SetModel, g: Graph) -> tuple[Rows, Edge | None]:
    """Declare the inputs of a graph of whole sets; instances end in the covariates of their set."""
    x = g.input("instances", ("sets", "size", *instance_shape(model)))
    level = None
    if model.covariates:
        known = g.input("covariates", ("sets", model.covariates))
        size = g.add("Concat", g.add("Shape", x, start=0, end=2), g.integers(1), axis=0)
        repeated = g.add("Expand", g.add("Unsqueeze", known, g.integers(1)), size)
        x = g.add("Concat", x, repeated, axis=2)
        level = networks.from_covariates(model, g, known)
    return Rows.of(g, x, g.input("mask", ("sets", "size"), np.bool_)), level
