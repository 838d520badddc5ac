"""Read tables that are written as printed: one row per line, its name first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

__all__ = ["numbers", "rows"]

Column = TypeVar("Column", bound=Hashable)


def numbers(printed: Sequence[str]) -> list[float | None]:
    """Parse the numbers of a row; a dash is None.

    >>> numbers(["1.5", "-", "+0.43"])
    [1.5, None, 0.43]
    """
    return [None if word == "-" else float(word) for word in printed]


def rows(columns: Sequence[Column], text: str) -> Mapping[str, Mapping[Column, float]]:
    """Parse the rows of a table without dashes.

    >>> table = rows(("US", "WTri"), "rnn 0.91 1.73")
    >>> table["rnn"]["WTri"]
    1.73
    """
    table = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, *printed = line.split()
        table[name] = MappingProxyType(dict(zip(columns, map(float, printed), strict=True)))
    return MappingProxyType(table)
