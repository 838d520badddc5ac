"""The type of progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

#: Called with the amount done and the total, which is None if unknown.
Progress = Callable[[int, int | None], None]
