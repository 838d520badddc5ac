"""The type of functions that are told how much of a work is done."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

#: Called with what is done and with the total; None where the total is not known.
Progress = Callable[[int, int | None], None]
