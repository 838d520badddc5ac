"""Learn what each instance adds to the label of its set.

The public names are resolved on first use, so that ``import capnets`` does not import torch. No
module of the package imports from here; each imports from the module that defines the name.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capnets.errors import InputError as InputError
    from capnets.estimators import SetClassifier as SetClassifier
    from capnets.estimators import SetFeatures as SetFeatures
    from capnets.estimators import SetRegressor as SetRegressor
    from capnets.estimators import SetSurvival as SetSurvival
    from capnets.evaluate import added_values as added_values
    from capnets.evaluate import predict as predict
    from capnets.explain import Explanation as Explanation
    from capnets.export import Engine as Engine
    from capnets.export import Stream as Stream
    from capnets.export import Streams as Streams
    from capnets.ingest import Columns as Columns
    from capnets.models import CapacityNetwork as CapacityNetwork
    from capnets.models import ModelSpec as ModelSpec
    from capnets.models import build as build
    from capnets.runs import load as load
    from capnets.sets import Sets as Sets
    from capnets.tasks import TaskSpec as TaskSpec
    from capnets.tasks import make as make_task  # noqa: F401
    from capnets.training.callbacks import Callback as Callback
    from capnets.training.fit import fit as fit
    from capnets.training.recipe import Recipe as Recipe

__version__ = "0.1.0"

# Public name -> module and attribute; a test compares them with the imports above.
# No name may be that of a subpackage: `import capnets.evaluate` would replace a function of that
# name by the module.
_HOMES = {
    "Callback": ("capnets.training.callbacks", "Callback"),
    "CapacityNetwork": ("capnets.models", "CapacityNetwork"),
    "Columns": ("capnets.ingest", "Columns"),
    "Engine": ("capnets.export", "Engine"),
    "Explanation": ("capnets.explain", "Explanation"),
    "InputError": ("capnets.errors", "InputError"),
    "ModelSpec": ("capnets.models", "ModelSpec"),
    "Recipe": ("capnets.training.recipe", "Recipe"),
    "SetClassifier": ("capnets.estimators", "SetClassifier"),
    "SetFeatures": ("capnets.estimators", "SetFeatures"),
    "SetRegressor": ("capnets.estimators", "SetRegressor"),
    "SetSurvival": ("capnets.estimators", "SetSurvival"),
    "Sets": ("capnets.sets", "Sets"),
    "Stream": ("capnets.export", "Stream"),
    "Streams": ("capnets.export", "Streams"),
    "TaskSpec": ("capnets.tasks", "TaskSpec"),
    "added_values": ("capnets.evaluate", "added_values"),
    "build": ("capnets.models", "build"),
    "fit": ("capnets.training.fit", "fit"),
    "load": ("capnets.runs", "load"),
    "make_task": ("capnets.tasks", "make"),
    "predict": ("capnets.evaluate", "predict"),
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'capnets' has no attribute {name!r}") from None
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
