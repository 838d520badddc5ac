"""Ask a service from many connections at once, as fast as it answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import numpy as np

__all__ = ["Load", "measure"]


@dataclass(frozen=True)
class Load:
    """Answers of a service to one load."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    failed: int

    @property
    def per_second(self) -> float:
        """Return the throughput."""
        return self.requests / self.seconds


class _Client(asyncio.Protocol):
    """One connection: send a request, wait for its answer, send the next until time is over."""

    def __init__(self, message: bytes, end: float) -> None:
        self._message, self._end = message, end
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[float] = []
        self.failed = 0
        self._data, self._wanted = b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Collect an answer; send the next request when it is complete."""
        self._data += data
        if not self._wanted:
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self._wanted = len(head) + 4 + int(length)
        if len(self._data) < self._wanted:
            return
        self.latencies.append(time.perf_counter() - self._sent)
        self.failed += not self._data.startswith(b"HTTP/1.1 200")
        self._data, self._wanted = b"", 0
        if self._sent < self._end:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Count a connection that the service closed."""
        self.failed += bool(self._data) or error is not None
        if not self.closed.done():
            self.closed.set_result(None)

    def _ask(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._message)  # type: ignore[attr-defined]


def measure(port: int, path: str, body: bytes, *, clients: int, seconds: float) -> Load:
    """Return throughput and latencies of `clients` connections over some seconds."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return asyncio.run(_measure(port, head.encode() + body, clients, seconds))


async def _measure(port: int, message: bytes, clients: int, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    made = [
        await loop.create_connection(lambda: _Client(message, began + seconds), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.closed for _, client in made))
    taken = time.perf_counter() - began
    latencies = np.concatenate([client.latencies for _, client in made]) * 1e3
    return Load(
        requests=len(latencies),
        seconds=taken,
        p50_ms=float(np.percentile(latencies, 50)),
        p99_ms=float(np.percentile(latencies, 99)),
        failed=sum(client.failed for _, client in made),
    )
