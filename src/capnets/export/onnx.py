"""The ONNX graphs of a network, built operator by operator from its modules.

Tracing a network fixes what it saw: torch's exporter freezes the number of instances of a recurrent
one. Here nothing is traced, so number and size of the sets stay open.

=========  ==============================================  ========================
graph      inputs -> outputs                               of which networks
=========  ==============================================  ========================
`sets`     instances, mask -> prediction, added_values     all
`predict`  instances, mask -> prediction                   those that are not additive
`step`     instance, state -> value, next_state            capacity networks
`chunk`    instances, state -> added_values, next_state    capacity networks
=========  ==============================================  ========================

ONNX Runtime computes every output of a graph whether it is asked for or not; `predict` spares a
network that is not additive the predictions of all prefixes. A state begins with zeros.
"""

from __future__ import annotations

import copy
import hashlib

import numpy as np
import torch
from torch import Tensor, nn

from capnets.errors import InputError
from capnets.export import networks
from capnets.export.graph import Graph
from capnets.export.rows import Rows
from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.nn.encoders import ConvEncoder

__all__ = ["PORTS", "feature_shape", "fingerprint", "graphs", "unit"]

#: What goes into each graph and what comes out, by name.
PORTS = {
    "sets": (["instances", "mask"], ["prediction", "added_values"]),
    "predict": (["instances", "mask"], ["prediction"]),
    "step": (["instance", "state"], ["value", "next_state"]),
    "chunk": (["instances", "state"], ["added_values", "next_state"]),
}


def graphs(model: SetModel) -> dict[str, bytes]:
    """All graphs of a network, by name, as they are written to files."""
    model = copy.deepcopy(model).cpu().eval()
    builders = {"sets": _sets}
    builders |= {"step": _step, "chunk": _chunk} if networks.streams(model) else {}
    builders |= {} if model.additive else {"predict": _predict}
    about = {"capnets.fingerprint": fingerprint(model)}
    built = {}
    for name, build in builders.items():
        g = Graph()
        build(model, g)
        built[name] = g.model(name, about).SerializeToString(deterministic=True)
    return built


def fingerprint(model: SetModel) -> str:
    """A digest of everything that decides what a network computes."""
    # Names of innermost modules only: how they are grouped changes nothing.
    kinds = [type(part).__name__ for part in model.modules() if not [*part.children()]]
    activations = [getattr(part, "activation", None) for part in model.modules()]
    about = (type(model).__name__, kinds, [a for a in activations if isinstance(a, str)])
    digest = hashlib.sha256(repr(about).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def feature_shape(model: SetModel) -> tuple[int | str, ...]:
    """The shape of one instance as the network takes it; words are sizes that may vary."""
    if isinstance(model, Ensemble):
        return feature_shape(model.each[0])
    for part in (model.inputs, getattr(model, "encoder", None)):
        while isinstance(part, nn.Sequential) and len(part):
            part = part[0]
        if isinstance(part, ConvEncoder):
            return part.channels, "height", "width"
    if model.in_features is None:
        raise InputError("this network does not say how many features its instances have")
    return (model.in_features,)


def unit(model: SetModel) -> Tensor:
    """The amount of label that 1 stands for inside a network; the mean of them in an ensemble."""
    members = model.each if isinstance(model, Ensemble) else [model]
    return torch.stack([member.unit for member in members]).mean(0)


def _sets(model: SetModel, g: Graph) -> None:
    x = _instances(model, g, masked=True)
    values = Rows.of(g, networks.added_values(model, g, x), x.mask).blank(g).padded(g)
    if model.additive:
        prediction = g.add("ReduceSum", values, g.integers(1), keepdims=0)
        g.output("prediction", prediction, ("sets", model.outputs))
    else:
        _output_prediction(model, g, x)
    g.output("added_values", values, ("sets", "size", model.outputs))


def _predict(model: SetModel, g: Graph) -> None:
    _output_prediction(model, g, _instances(model, g, masked=True))


def _chunk(model: SetModel, g: Graph) -> None:
    _advance(model, g, _instances(model, g, masked=False), "added_values", "size")


def _step(model: SetModel, g: Graph) -> None:
    _advance(model, g, Rows(g.input("instance", ("sets", *feature_shape(model)))), "value")


def _advance(model: SetModel, g: Graph, x: Rows, name: str, *size: str) -> None:
    memory = ("sets", model.initial_state(1).shape[1])  # type: ignore[operator]
    values, after = networks.advance(model, g, x, g.input("state", memory))
    g.output(name, values, ("sets", *size, model.outputs))
    g.output("next_state", after, memory)


def _output_prediction(model: SetModel, g: Graph, x: Rows) -> None:
    # A network that is not additive cannot say what an empty set is worth, and must not seem to.
    some = g.add("Greater", x.sizes(g), g.integers(0))
    prediction = g.add("Where", some, networks.prediction(model, g, x), g.constant(np.nan))
    g.output("prediction", prediction, ("sets", model.outputs))


def _instances(model: SetModel, g: Graph, *, masked: bool) -> Rows:
    x = g.input("instances", ("sets", "size", *feature_shape(model)))
    mask = g.input("mask", ("sets", "size"), np.bool_) if masked else None
    return Rows.of(g, x, mask)
