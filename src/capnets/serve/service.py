"""The state that all routes share: networks, streams, limits and threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from capnets.serve.limits import Limits, RequestError
from capnets.serve.metrics import Metrics
from capnets.serve.network import Network, open_networks
from capnets.serve.streams import OpenStreams
from capnets.serve.tensors import Given, SetsBody, read_sets
from capnets.tasks.sentences import encode_sentences

__all__ = ["Service"]

Answer = TypeVar("Answer")


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
        self.embedding = ThreadPoolExecutor(1, thread_name_prefix="embed")
        for model in {network.sentence_model for network in self.networks.values()}:
            if model is not None:  # load the encoder before the first request
                self.embedding.submit(encode_sentences, ["Ready."], model=model)
        self.streaming = ThreadPoolExecutor(1, thread_name_prefix="stream")

    def network(self, name: str) -> Network:
        """Return a network by name."""
        if name not in self.networks:
            raise RequestError(
                404, f"there is no such model; choose from {', '.join(self.networks)}"
            )
        return self.networks[name]

    def read(self, network: Network, body: SetsBody) -> Given:
        """Return the sets of a request."""
        return read_sets(body, features=network.features, limits=self.limits)

    async def infer(self, name: str, body: SetsBody) -> dict[str, Any]:
        """Return predictions and added values."""
        network = self.network(name)
        return await self.in_time(network.infer(self.read(network, body), body.id))

    async def in_time(self, work: Awaitable[Answer]) -> Answer:
        """Wait for an answer as long as the limit allows."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await work
        except TimeoutError:
            raise RequestError(
                429, f"no answer within {self.limits.seconds:g} seconds; ask for less, or later"
            ) from None

    async def on(
        self, pool: ThreadPoolExecutor, work: Callable[..., Answer], *arguments: Any
    ) -> Answer:
        """Compute in a thread of a pool."""
        loop = asyncio.get_running_loop()
        return await self.in_time(loop.run_in_executor(pool, work, *arguments))

    def close(self) -> None:
        """Stop all threads after what they compute now."""
        for pool in (self.explaining, self.embedding, self.streaming):
            pool.shutdown()
        for network in self.networks.values():
            network.batcher.close()
