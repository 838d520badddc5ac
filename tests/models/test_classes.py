"""Classes of networks are abstract or final: nothing implemented is overridden."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest
from torch import nn

import capnets.models
from capnets.models import CapacityNetwork, SetModel
from capnets.models.aggregations import Aggregation


def classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(capnets.models.__path__, "capnets.models."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, SetModel | Aggregation) and kind.__module__ == module.name:
                yield kind


def overridden(kind: type) -> list[str]:
    """Methods and properties of a class that a base class of the package implements, too."""
    found = []
    for name, own in vars(kind).items():
        if name.startswith("__") or not (inspect.isfunction(own) or isinstance(own, property)):
            continue
        for base in kind.__mro__[1:]:
            other = vars(base).get(name)
            method = inspect.isfunction(other) or isinstance(other, property)
            if base is nn.Module or not method:
                continue
            if not getattr(other, "__isabstractmethod__", False):
                found.append(f"{base.__name__}.{name}")
    return found


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_nothing_implemented_is_overridden(kind):
    assert overridden(kind) == []


def test_overriding_is_found():
    class Other(CapacityNetwork):
        def values(self, x):
            return super().values(x) + 1

    assert overridden(Other) == ["CapacityNetwork.values"]
