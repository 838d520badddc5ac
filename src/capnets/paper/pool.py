"""Worker pools: local processes, or a Dask cluster behind the same interface.

Jobs are submitted one by one, and results come back as events. If a worker dies, its job is
submitted again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from capnets.errors import InputError
from capnets.memory import keep_freed
from capnets.paper.jobs import Job
from capnets.paper.results import Record

__all__ = ["EpochDone", "Event", "JobDone", "JobError", "LocalWorkers", "WorkerLost", "Workers"]


@dataclass(frozen=True)
class EpochDone:
    """An epoch ended."""

    job: Job
    epoch: int


@dataclass(frozen=True)
class JobDone:
    """A job is done, successfully or with a recorded failure."""

    record: Record


@dataclass(frozen=True)
class WorkerLost:
    """The worker of a job died; `final` if the pool has already retried it."""

    job: Job
    final: bool = False


@dataclass(frozen=True)
class JobError:
    """A job could not run; this is not a result.

    `no_data` if a data file of its source is missing or damaged.
    """

    job: Job
    message: str
    no_data: bool = False


Event = EpochDone | JobDone | WorkerLost | JobError


class Workers(Protocol):
    """A pool of workers."""

    @property
    def count(self) -> int:
        """Number of workers; it may change."""

    def room(self) -> int:
        """Return how many more jobs would start at once."""

    def submit(self, job: Job) -> None:
        """Submit a job."""

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield events; wait at most `timeout` seconds for the first."""

    def stop(self) -> None:
        """Stop all work at once; checkpoints remain."""


def attempt(job: Job, runs: Path, progress: Any = None) -> JobDone | JobError:
    """Run a job and turn exceptions into messages, as not all of them can be pickled."""
    try:
        from capnets.paper.execute import run_job

        return JobDone(run_job(job, runs=runs, progress=progress))
    except InputError as error:
        from capnets.tasks.files import NoData

        return JobError(job, str(error), no_data=isinstance(error, NoData))
    except Exception as error:
        return JobError(job, f"{type(error).__name__}: {error}")


# Local processes ----------------------------------------------------------------------------------


class LocalWorkers:
    """Processes of this machine, one torch thread each.

    Parameters
    ----------
    processes
        Number of processes.
    runs
        The folder of run folders.
    """

    def __init__(self, processes: int, *, runs: Path) -> None:
        self.runs = runs
        self.workers = [_Worker(runs) for _ in range(processes)]

    @property
    def count(self) -> int:
        """Number of processes."""
        return len(self.workers)

    def room(self) -> int:
        """Return the number of idle processes."""
        return sum(worker.job is None for worker in self.workers)

    def submit(self, job: Job) -> None:
        """Send a job to an idle process."""
        next(worker for worker in self.workers if worker.job is None).begin(job)

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield what the processes report; replace those that died."""
        ready = wait([worker.connection for worker in self.workers], timeout)
        for number, worker in enumerate(self.workers):
            if worker.connection not in ready:
                continue
            try:
                event = worker.connection.recv()
            except (EOFError, OSError):
                # The process died: replace it.
                worker.stop()
                self.workers[number] = _Worker(self.runs)
                if worker.job is not None:
                    yield WorkerLost(worker.job)
                continue
            if not isinstance(event, EpochDone):
                worker.job = None
            yield event

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()


class _Worker:
    """A process and the connection to it."""

    def __init__(self, runs: Path) -> None:
        # Spawned, not forked: a fork of a process that has used torch's threads can hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.job: Job | None = None
        self.process = context.Process(target=_serve, args=(theirs, runs), daemon=True)
        self.process.start()
        theirs.close()  # so that reading fails when the process ends

    def begin(self, job: Job) -> None:
        self.job = job
        with suppress(OSError):  # the process died; `events` will find out
            self.connection.send(job)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection, runs: Path) -> None:
    """Run jobs from the connection until it closes."""
    # Ctrl-C reaches every process of the terminal; only the scheduler handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_freed()
    while True:
        try:
            job = connection.recv()
            connection.send(attempt(job, runs, partial(_tell, connection, job)))
        except (EOFError, OSError):
            return


def _tell(connection: Connection, job: Job, epoch: int) -> None:
    connection.send(EpochDone(job, epoch))


def _end_with_parent() -> None:
    """End this process when the scheduler is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
