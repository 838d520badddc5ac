"""Networks and tasks of the paper's tables, by the names that the library gives them.

The lists belong to the paper: adding a network or a task to the library does not change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capnets.errors import unknown
from capnets.models import MODELS as REGISTRY

__all__ = [
    "BEYOND",
    "CAPACITY",
    "COUNTERPART",
    "MODELS",
    "RECURRENT",
    "RIDGE",
    "SYSTEMS",
    "TASKS",
    "WITHOUT_ORDER",
    "find_model",
    "find_task",
    "label",
]

CAPACITY = ("c-rnn", "c-lstm", "c-gru")
# Each capacity network and the recurrent network with the same cell and as many parameters.
COUNTERPART: Mapping[str, str] = MappingProxyType(
    {name: other for name in CAPACITY if (other := REGISTRY[name].counterpart) is not None}
)
RECURRENT = (*COUNTERPART.values(), *CAPACITY)
WITHOUT_ORDER = ("deepset", "attention", "set-transformer", "set-transformer-l")
MODELS = RECURRENT + WITHOUT_ORDER
# Networks that the paper does not have; they stand below its ten, without printed numbers.
BEYOND = ("c-deepset", "c-potential")
# Systems that the paper discusses, and near relatives since; they have a table of their own. To add
# one, add its name of the registry here. The cheapest come first.
SYSTEMS = (
    "pointnet",
    "gated-attention",
    "additive-mil",
    "fspool",
    "instance-lstm",
    "message-passing",
    "memory",
    "set2set",
    "choquet",
    "janossy-pairs",
    "janossy-orders",
    "c-order",
)
# A baseline for documents: ridge regression on mean sentence vectors.
RIDGE = "ridge"

# Short name in the paper -> name in the library.
TASKS: Mapping[str, str] = MappingProxyType(
    {
        "UC": "unique-count",
        "US": "unique-sum",
        "WTri": "weighted-triangular",
        "US+S": "unique-sum-synergy",
        "TriC": "triangular-count",
        "Sent": "sentiment",
        "Mult": "product",
    }
)


def label(model: str) -> str:
    """Return the name of a network as tables and figures print it.

    >>> label("c-lstm"), label("set-transformer-l")
    ('C-LSTM', 'Set Transformer L')
    """
    return "Ridge on mean vectors" if model == RIDGE else REGISTRY[model].label


def find_model(name: str) -> str:
    """Return the name of a network of the tables; case does not matter.

    >>> find_model("C-GRU")
    'c-gru'
    """
    known = (*MODELS, *BEYOND, *SYSTEMS, RIDGE)
    if name.lower() in known:
        return name.lower()
    raise unknown("model of the tables", name, known)


def find_task(name: str) -> str:
    """Return the short name of a task of the paper, given either of its names in any case.

    >>> find_task("unique-sum"), find_task("us+s")
    ('US', 'US+S')
    """
    for short, long in TASKS.items():
        if name.lower() in (short.lower(), long):
            return short
    raise unknown("task of the paper", name, [*TASKS, *TASKS.values()])
