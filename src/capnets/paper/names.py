"""The paper's networks and tasks by the names they have here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capnets.errors import unknown

__all__ = [
    "BEYOND",
    "BEYOND_ORDERED",
    "CAPACITY",
    "COUNTERPART",
    "LABELS",
    "MODELS",
    "RECURRENT",
    "RIDGE",
    "TASKS",
    "WITHOUT_ORDER",
    "find_model",
    "find_task",
]

# Capacity network -> the network that has the same parameters and decodes only its last state.
COUNTERPART: Mapping[str, str] = MappingProxyType(
    {"c-rnn": "rnn", "c-lstm": "lstm", "c-gru": "gru"}
)
CAPACITY = tuple(COUNTERPART)
RECURRENT = (*COUNTERPART.values(), *CAPACITY)
WITHOUT_ORDER = ("deepset", "attention", "set-transformer", "set-transformer-l")
MODELS = RECURRENT + WITHOUT_ORDER
# Not of the paper: networks of ours that stand below its ten in tables, without a printed number.
BEYOND = ("c-deepset", "c-potential")
# Those of them whose answer depends on the order of the instances.
BEYOND_ORDERED = ("c-deepset",)
# Not of the paper: the plain baseline for documents.
RIDGE = "ridge"

# As the paper writes them.
LABELS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name.upper() for name in RECURRENT},
        "c-deepset": "C-DeepSet",
        "c-potential": "C-Potential",
        "deepset": "DeepSet",
        "attention": "Attention",
        "set-transformer": "Set Transformer",
        "set-transformer-l": "Set Transformer L",
        RIDGE: "Ridge on mean vectors",
    }
)

# The paper's short name -> the name of the task.
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


def find_model(name: str) -> str:
    """One of the paper's ten networks, of ours below them, or the baseline; in any case.

    >>> find_model("C-GRU")
    'c-gru'
    """
    known = (*MODELS, *BEYOND, RIDGE)
    if name.lower() in known:
        return name.lower()
    raise unknown("model of the tables", name, known)


def find_task(name: str) -> str:
    """The short name of one of the paper's tasks, given either of its names in any case.

    >>> find_task("unique-sum"), find_task("us+s")
    ('US', 'US+S')
    """
    for short, long in TASKS.items():
        if name.lower() in (short.lower(), long):
            return short
    raise unknown("task of the paper", name, [*TASKS, *TASKS.values()])
