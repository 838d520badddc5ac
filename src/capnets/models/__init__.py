"""Set networks: one file per network, built by name with `build`."""

from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.base import AdditiveModel, SetModel, SteppingModel
from capnets.models.capacity import CapacityNetwork
from capnets.models.ensemble import Ensemble
from capnets.models.prefixes import PrefixModel, WholeSetModel
from capnets.models.registry import MODELS, Entry
from capnets.models.spec import ModelSpec, build, parameters

__all__ = [
    "AGGREGATIONS",
    "BASELINES",
    "MODELS",
    "AdditiveModel",
    "CapacityNetwork",
    "Ensemble",
    "Entry",
    "ModelSpec",
    "PrefixModel",
    "SetModel",
    "SteppingModel",
    "WholeSetModel",
    "build",
    "parameters",
]
