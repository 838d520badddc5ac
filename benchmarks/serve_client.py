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

    def __init__(self, message: bytes) -> None:
        self._message, self._end = message, 0.0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[float] = []
        self.failed = 0
        self._data, self._wanted = b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def ask(self, end: float) -> None:
        """Ask at least once, and again and again until a time; forget earlier latencies."""
        self.latencies, self._end = [], end
        if self.transport.is_closing():
            self.failed += 1
            return
        self._done = asyncio.get_running_loop().create_future()
        self._ask()
        await self._done

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
            self._done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Count a request that the service did not answer."""
        if not self._done.done():
            self.failed += 1
            self._done.set_result(None)

    def _ask(self) -> None:
        self._sent = time.perf_counter()
        self.transport.write(self._message)


def measure(port: int, path: str, body: bytes, *, clients: int, seconds: float) -> Load:
    """Return throughput and latencies of `clients` connections over some seconds."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return asyncio.run(_measure(port, head.encode() + body, clients, seconds))


async def _measure(port: int, message: bytes, clients: int, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: _Client(message), "127.0.0.1", port))[1]
        for _ in range(clients)
    ]
    # A busy service accepts connections slowly: time counts when all of them have been answered.
    await asyncio.gather(*(client.ask(0.0) for client in made))
    began = time.perf_counter()
    await asyncio.gather(*(client.ask(began + seconds) for client in made))
    taken = time.perf_counter() - began
    for client in made:
        client.transport.close()
    latencies = np.concatenate([client.latencies for client in made]) * 1e3
    return Load(
        requests=len(latencies),
        seconds=taken,
        p50_ms=float(np.percentile(latencies, 50)),
        p99_ms=float(np.percentile(latencies, 99)),
        failed=sum(client.failed for client in made),
    )
