"""The paper's tables and figures, found by name, by number or by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from capnets.errors import unknown
from capnets.paper.tables import effectiveness, interpretability, settings
from capnets.paper.tables.table import Entry, Reading, Table

__all__ = ["GROUPS", "TABLES", "Entry", "Reading", "Table", "find_tables"]

TABLES: Mapping[str, Table] = MappingProxyType(
    {t.name: t for t in effectiveness.TABLES + interpretability.TABLES + settings.TABLES}
)

# Tables that show the same runs.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "all": tuple(TABLES),
        "main": ("main-mean", "main-median", "main-deviation"),
        "training-sizes": ("training-absolute", "training-relative", "training-accuracy"),
        "varying-sizes": ("varying-mean", "varying-median"),
        "order-sensitivity": ("order-points", "order-statistics"),
        "examples": ("example-us", "example-product", "examples-more"),
        "added-values": ("added-value-error", "prefix-added-values"),
        "labels": ("label-statistics", "label-histograms"),
    }
)


def find_tables(names: Iterable[str]) -> tuple[Table, ...]:
    """Return tables by name, number ("table1", "figure2") or group ("main", "all"), each once.

    >>> [table.name for table in find_tables(["table1", "added-values"])]
    ['main-mean', 'added-value-error', 'prefix-added-values']
    """
    every = {**{name: (t.name,) for t in TABLES.values() for name in t.names}, **GROUPS}
    found: dict[str, Table] = {}
    for name in names:
        wanted = name.strip().lower().replace(" ", "").replace("_", "-")
        if wanted not in every:
            raise unknown("table", name, every, listed="capnets reproduce")
        found |= {one: TABLES[one] for one in every[wanted]}
    return tuple(found.values())
