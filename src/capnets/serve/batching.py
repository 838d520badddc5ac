"""Compute concurrent requests in one batch; large batches in a thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from capnets.export.engine import ROWS, Engine
from capnets.serve.tensors import Given
from capnets.sets import Array

__all__ = ["Batcher"]

Answer = tuple[Array, Array]
#: Batches that take fewer seconds are computed on the event loop. Moving such a batch to a thread
#: and back costs as much as computing it, and both threads compete for the interpreter.
QUICK = 1e-3


class Batcher:
    """A queue of requests for one network.

    All requests that have arrived are computed together, so batches grow with the load and nobody
    waits for a batch to fill. Quick batches are computed on the event loop, others in a thread,
    during which more requests are read.

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
        self._pace = math.inf  # seconds per unit of work

    async def infer(self, given: Given) -> Answer:
        """Return predictions (sets x outputs) and added values (instances x outputs)."""
        self._engine.check_shape(given.rows.shape[1:])
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((given, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run())
        return await future

    def close(self) -> None:
        """Stop the thread after what it computes now."""
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        await self._settle()
        while batch := self._next():
            self._observe(len(batch))
            sets = [given for given, _ in batch]
            if self._pace * self._work_of(sets) < QUICK:
                found = self._compute(sets)
            else:
                found = await loop.run_in_executor(self._thread, self._compute, sets)
            for (_, future), answer in zip(batch, found, strict=True):
                if future.done():  # the client's time was over
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
            await self._settle()

    async def _settle(self) -> None:
        """Let others send answers and read requests until no more requests arrive."""
        waiting = -1
        while waiting < len(self._waiting):
            waiting = len(self._waiting)
            for _ in range(2):  # one turn to receive a request, one to read it
                await asyncio.sleep(0)

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
        began = time.perf_counter()
        try:
            answers = self._together(batch)
        except Exception as error:
            if len(batch) == 1:
                return [error]
            # The fault of one request is not the fault of its neighbours.
            return [answer for given in batch for answer in self._compute([given])]
        # Small batches are mostly overhead, and others may interrupt: follow the minimum.
        found = (time.perf_counter() - began) / max(self._work_of(batch), 1)
        self._pace = min(1.1 * self._pace, found)
        return list(answers)

    def _work_of(self, batch: list[Given]) -> int:
        """Return the instances that the network reads; without streams, each meets all others."""
        if self._engine.streams:
            return sum(len(given.rows) for given in batch)
        return sum(int(np.vdot(given.sizes, given.sizes)) for given in batch)

    def _together(self, batch: list[Given]) -> list[Answer]:
        rows = np.concatenate([given.rows for given in batch])
        sizes = np.concatenate([given.sizes for given in batch])
        longest = int(sizes.max())
        if 0 < longest * len(sizes) <= ROWS:
            mask = np.arange(longest) < sizes[:, None]
            x = np.zeros((*mask.shape, *rows.shape[1:]), dtype=np.float32)
            x[mask] = rows
            predictions, padded = self._engine.infer_padded(x, mask)
            values = padded[mask]
        else:
            predictions, values = self._engine.infer(Given(rows, sizes).to_sets())
        answers, sets, instances = [], 0, 0
        for given in batch:
            last = sets + len(given.sizes), instances + len(given.rows)
            answers.append((predictions[sets : last[0]], values[instances : last[1]]))
            sets, instances = last
        return answers
