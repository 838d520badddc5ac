"""Workers of a Dask cluster.

Every job is one future, run again if its worker is lost. Run folders are written where the worker
is: on a shared file system an interrupted job resumes from its checkpoint, elsewhere it starts
over. Records are returned either way.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from capnets.errors import InputError
from capnets.paper.jobs import Job
from capnets.paper.pool import EpochDone, Event, JobDone, JobError, WorkerLost, attempt

__all__ = ["ClusterWorkers"]

SECONDS_TO_ANSWER = 5
PROTOCOLS = ("tcp", "tls", "ws", "wss")
TOPIC = "capnets-progress"


class ClusterWorkers:
    """Workers of a Dask scheduler.

    Parameters
    ----------
    address
        Address of the scheduler, such as tcp://10.0.0.1:8786.
    runs
        The folder of run folders, as the workers see it.
    """

    def __init__(self, address: str, *, runs: Path) -> None:
        self.client = _connect(address)
        try:
            self.client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError:
            self.client.close()
            raise InputError(
                f"the Dask scheduler at {address} has no workers; "
                f"start some with `dask worker {address} --nthreads 1`"
            ) from None
        self.runs = runs
        self.futures: dict[str, tuple[Job, Any]] = {}
        self.happened: Queue[Event] = Queue()
        self.client.subscribe_topic(TOPIC, self._hear)

    @property
    def count(self) -> int:
        """Current number of workers."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def room(self) -> int:
        """Return twice the number of workers less the jobs submitted, so that no worker waits."""
        return max(0, 2 * self.count - len(self.futures))

    def submit(self, job: Job) -> None:
        """Submit a job to the scheduler."""
        future = self.client.submit(_attempt, job, self.runs, pure=False)
        self.futures[job.key] = (job, future)
        future.add_done_callback(partial(self._end, job))

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield what the scheduler reports."""
        try:
            event = self.happened.get(timeout=timeout)
        except Empty:
            if self.client.status != "running":
                raise InputError("lost the Dask scheduler; restart it and run again") from None
            return
        if isinstance(event, EpochDone):
            if event.job.key in self.futures:  # else the job is already done
                yield event
            return
        job = event.record.job if isinstance(event, JobDone) else event.job
        _, future = self.futures.pop(job.key)
        future.release()
        yield event

    def stop(self) -> None:
        """Cancel unfinished jobs and disconnect; the cluster keeps running."""
        with suppress(Exception):  # the scheduler may be gone
            self.client.cancel([future for _, future in self.futures.values()], force=True)
        self.client.close()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        key = event[1]["key"]
        if key in self.futures:
            self.happened.put(EpochDone(self.futures[key][0], event[1]["epoch"]))

    def _end(self, job: Job, future: Any) -> None:
        if future.status == "finished":
            self.happened.put(future.result())
        elif future.status == "error":
            # `attempt` catches all exceptions, so this one is Dask's: it lost several workers, or
            # could not return the result.
            error = future.exception()
            if type(error).__name__ == "KilledWorker":
                self.happened.put(WorkerLost(job, final=True))
            else:
                self.happened.put(JobError(job, f"{type(error).__name__}: {error}"))


def _connect(address: str) -> Any:
    """Connect to the scheduler, or fail within seconds even if something else answers.

    The identity is asked for before a client is made, because a client that waits for an answer can
    neither be stopped nor closed.
    """
    place = _place(address)
    try:
        from distributed import Client
    except ImportError:
        raise InputError("a cluster needs Dask: install capnets with the extra 'cluster'") from None
    connect: Any = Client  # Dask's own methods have no types
    try:
        _within(SECONDS_TO_ANSWER, partial(_greet, address, place))
        return connect(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except Exception as error:  # anything can be at the address
        strange = isinstance(error, MemoryError)  # its bytes were read as the size of a message
        why = "what is there is not Dask" if strange else str(error) or "no answer"
        raise InputError(
            f"no Dask scheduler answers at {address} within {SECONDS_TO_ANSWER} s ({why}); "
            "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from error


def _place(address: str) -> tuple[str, int]:
    """Return host and port; refuse other addresses before Dask tries them."""
    with suppress(ValueError):  # invalid port or bracket
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        spaces = any(map(str.isspace, address))
        if parts.scheme in PROTOCOLS and parts.hostname and parts.port and not spaces:
            return parts.hostname, parts.port
    raise InputError(
        f"{address!r} is not the address of a Dask scheduler, PROTOCOL://HOST:PORT such as "
        f"tcp://10.0.0.1:8786; protocols are {', '.join(PROTOCOLS)}"
    )


def _greet(address: str, place: tuple[str, int]) -> None:
    """Check that a scheduler answers."""
    # Also resolves the host name; Dask's threads for that would outlive the deadline.
    socket.create_connection(place, timeout=SECONDS_TO_ANSWER).close()
    who = asyncio.run(asyncio.wait_for(_identity(address), SECONDS_TO_ANSWER))
    if "Scheduler" not in who:
        raise ValueError(f"it is the address of a {who.lower()}")


async def _identity(address: str) -> str:
    from distributed import Security
    from distributed.core import rpc

    ask: Any = rpc
    security: Any = Security
    arguments = security().get_connection_args("client")
    async with ask(address, timeout=SECONDS_TO_ANSWER, connection_args=arguments) as server:
        return str((await server.identity())["type"])


def _within(seconds: float, act: Callable[[], None]) -> None:
    """Call a function that may hang; give up after a deadline."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            act()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    Thread(target=run, daemon=True).start()
    done.result(timeout=seconds)


def _attempt(job: Job, runs: Path) -> JobDone | JobError:
    from distributed import get_worker

    worker = get_worker()
    return attempt(
        job, runs, lambda epoch: worker.log_event(TOPIC, {"key": job.key, "epoch": epoch})
    )
