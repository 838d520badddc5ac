"""Networks to stream, and their expected values."""

import numpy as np
import torch

from capnets.export import Engine
from capnets.models import MODELS, build
from capnets.models.base import SteppingModel

X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def network(name="c-gru", **about):
    return build(name, **{"seed": 0, "in_features": 3, "hidden": 8} | about).eval()


def wanted(model, x=X):
    with torch.no_grad():
        values = model.added_values(torch.from_numpy(x)[None])[0].numpy()
    return values[:, 0] if model.outputs == 1 else values


#: Networks that declare that they read step by step, and all others.
STEPPING = [name for name in MODELS if isinstance(network(name), SteppingModel)]
OTHERS = [name for name in MODELS if name not in STEPPING]
ENGINE = Engine(network("c-lstm"))
VALUES = wanted(network("c-lstm"))
