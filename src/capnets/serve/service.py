"""The state that all routes share: networks, streams, limits and threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from capnets.serve.limits import Limits, RequestError
from capnets.serve.metrics import Metrics
from capnets.serve.network import Network, open_networks
from capnets.serve.streams import OpenStreams

__all__ = ["Service"]


class Service:
    """Networks, open streams and the threads that compute.

    Parameters
    ----------
    folders
        Runs, or what `export` wrote.
    limits
        Limits on requests.
    """

    def __init__(self, folders: Iterable[str | Path], *, limits: Limits) -> None:
        self.limits = limits
        self.metrics = Metrics()
        batch = self.metrics.batch
        self.networks = open_networks(
            folders, limits=limits, observe=lambda name, count: batch.labels(name).observe(count)
        )
        self.streams = OpenStreams(limits)
        # Explanations may take seconds; streams must not wait for them.
        self.explaining = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self.streaming = ThreadPoolExecutor(1, thread_name_prefix="stream")

    def network(self, name: str) -> Network:
        """Return a network by name."""
        if name not in self.networks:
            raise RequestError(
                404, f"there is no such model; choose from {', '.join(self.networks)}"
            )
        return self.networks[name]

    async def in_time(self, work: Any) -> Any:
        """Wait for an answer as long as the limit allows."""
        try:
            return await asyncio.wait_for(work, self.limits.seconds)
        except TimeoutError:
            raise RequestError(
                429, f"no answer within {self.limits.seconds:g} seconds; ask for less, or later"
            ) from None

    async def on(self, pool: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Any:
        """Compute in a thread of a pool."""
        loop = asyncio.get_running_loop()
        return await self.in_time(loop.run_in_executor(pool, work, *arguments))

    def close(self) -> None:
        """Stop all threads after what they compute now."""
        for pool in (self.explaining, self.streaming):
            pool.shutdown()
        for network in self.networks.values():
            network.batcher.close()
