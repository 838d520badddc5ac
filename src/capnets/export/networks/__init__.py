"""ONNX operators of the networks; they map raw instances to amounts in the unit of the label.

There is one file per network, as in `capnets.models`. `base` defines the functions to register.
"""

from capnets.export.networks import (
    attention,
    capacity,
    ensemble,
    pairs,
    pool,
    pooled,
    potential,
    recurrent,
    set_transformer,
    sorted,
)
from capnets.export.networks.base import (
    Memory,
    added_values,
    advance,
    from_baseline,
    from_covariates,
    memory,
    predict,
    prediction,
    predicts_apart,
)

__all__ = [
    "Memory",
    "added_values",
    "advance",
    "attention",
    "capacity",
    "ensemble",
    "from_baseline",
    "from_covariates",
    "memory",
    "pairs",
    "pool",
    "pooled",
    "potential",
    "predict",
    "prediction",
    "predicts_apart",
    "recurrent",
    "set_transformer",
    "sorted",
]
