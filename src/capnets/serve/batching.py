"""Compute concurrent requests in one batch, outside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from capnets.export.engine import ROWS, Engine
from capnets.serve.tensors import Given
from capnets.sets import Array

__all__ = ["Batcher"]

Answer = tuple[Array, Array]


class Batcher:
    """A queue of requests for one network.

    A request that arrives while nothing is computed starts at once. Requests that arrive during a
    computation wait and are computed together, so batches grow with the load and nobody waits for
    a batch to fill.

    Parameters
    ----------
    engine
        The network.
    observe
        Called with the number of requests of every batch.
    """

    def __init__(self, engine: Engine, *, observe: Callable[[int], None]) -> None:
        self._engine = engine
        self._observe = observe
        self._waiting: deque[tuple[Given, asyncio.Future[Answer]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="infer")

    async def infer(self, given: Given) -> Answer:
        """Return predictions (sets x outputs) and added values (instances x outputs)."""
        self._engine.check_shape(given.rows.shape[1:])
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((given, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    def close(self) -> None:
        """Stop the thread after what it computes now."""
        self._thread.shutdown()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := self._next():
            self._observe(len(batch))
            found = await loop.run_in_executor(
                self._thread, self._compute, [given for given, _ in batch]
            )
            for (_, future), answer in zip(batch, found, strict=True):
                if future.done():  # the client's time was over
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _next(self) -> list[tuple[Given, asyncio.Future[Answer]]]:
        """Take requests with instances of one shape, up to the rows of one call."""
        batch: list[tuple[Given, asyncio.Future[Answer]]] = []
        rows = 0
        while self._waiting:
            given, future = self._waiting[0]
            fits = not batch or (
                rows + len(given.rows) <= ROWS
                and given.rows.shape[1:] == batch[0][0].rows.shape[1:]
            )
            if not fits:
                break
            self._waiting.popleft()
            if not future.done():
                batch.append((given, future))
                rows += len(given.rows)
        return batch

    def _compute(self, batch: list[Given]) -> list[Answer | Exception]:
        try:
            return list(self._together(batch))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            # The fault of one request is not the fault of its neighbours.
            return [answer for given in batch for answer in self._compute([given])]

    def _together(self, batch: list[Given]) -> list[Answer]:
        joined = Given(
            np.concatenate([given.rows for given in batch]),
            np.concatenate([given.sizes for given in batch]),
        )
        predictions, values = self._engine.infer(joined.to_sets())
        sets = np.cumsum([len(given.sizes) for given in batch])[:-1]
        rows = np.cumsum([len(given.rows) for given in batch])[:-1]
        return list(zip(np.split(predictions, sets), np.split(values, rows), strict=True))
