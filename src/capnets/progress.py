"""Types of progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "TitledProgress"]

#: Called with the amount done and the total, which is None if unknown.
Progress = Callable[[int, int | None], None]
#: Called with a title, the amount done and the total.
TitledProgress = Callable[[str, int, int], None]
