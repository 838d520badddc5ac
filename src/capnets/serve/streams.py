"""Open streams of the service, known by random names."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from capnets.export import Stream
from capnets.export.engine import Engine
from capnets.serve.limits import Limits, RequestError

__all__ = ["OpenStreams"]


@dataclass(eq=False)
class _Entry:
    model: str
    stream: Stream
    used: float = field(default_factory=time.monotonic)


class OpenStreams:
    """Streams of all networks.

    Parameters
    ----------
    limits
        How many may be open, and how long an unused one is kept when more are asked for.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._entries)

    def open(self, model: str, engine: Engine) -> tuple[str, Stream]:
        """Open a stream; return its name, which nobody can guess, and the stream."""
        if len(self) >= self._limits.streams:
            self._close_idle()
        if len(self) >= self._limits.streams:
            raise RequestError(
                429, f"all {self._limits.streams} streams are in use; close one first"
            )
        name = secrets.token_urlsafe(16)
        self._entries[name] = _Entry(model, Stream(engine))
        return name, self._entries[name].stream

    def get(self, model: str, name: str) -> Stream:
        """Return an open stream of a network."""
        entry = self._entries.get(name)
        if entry is None or entry.model != model:
            raise RequestError(404, "there is no such stream: it was closed, or never opened")
        entry.used = time.monotonic()
        return entry.stream

    def close(self, model: str, name: str) -> Stream:
        """Close a stream and return it."""
        stream = self.get(model, name)
        del self._entries[name]
        return stream

    def _close_idle(self) -> None:
        oldest = time.monotonic() - self._limits.idle
        for name in [name for name, entry in self._entries.items() if entry.used < oldest]:
            del self._entries[name]
