"""Where the work is done: local processes, or a Dask cluster. Both are told and asked alike.

Work is handed out job by job, and what came of it comes back as events. Nothing depends on a
worker surviving: what it was at is handed out again.
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
    """A job was done, well or with a recorded failure."""

    record: Record


@dataclass(frozen=True)
class WorkerLost:
    """The process that was at a job is gone; `final`: so were those that tried it before."""

    job: Job
    final: bool = False


@dataclass(frozen=True)
class JobError:
    """A job could not be done, for a reason that is no result: data that is not there, an error.

    `no_data`: a data file of its source is missing or damaged.
    """

    job: Job
    message: str
    no_data: bool = False


Event = EpochDone | JobDone | WorkerLost | JobError


class Workers(Protocol):
    """Some workers."""

    @property
    def count(self) -> int:
        """How many they are, which may change."""

    def room(self) -> int:
        """How many more jobs would be begun at once."""

    def submit(self, job: Job) -> None:
        """Hand out a job."""

    def events(self, timeout: float) -> Iterator[Event]:
        """What happened; waits for something at most so many seconds."""

    def stop(self) -> None:
        """Let go of everything at once; checkpoints stay."""


def attempt(job: Job, runs: Path, progress: Any = None) -> JobDone | JobError:
    """Do a job, and turn what goes wrong into words: exceptions may not survive the way home."""
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
        How many.
    runs
        The folder of run folders.
    """

    def __init__(self, processes: int, *, runs: Path) -> None:
        self.runs = runs
        self.workers = [_Worker(runs) for _ in range(processes)]

    @property
    def count(self) -> int:
        """How many processes there are."""
        return len(self.workers)

    def room(self) -> int:
        """Processes that have nothing to do."""
        return sum(worker.job is None for worker in self.workers)

    def submit(self, job: Job) -> None:
        """Give a job to a process that has nothing to do."""
        next(worker for worker in self.workers if worker.job is None).begin(job)

    def events(self, timeout: float) -> Iterator[Event]:
        """What the processes say; one that is gone is replaced."""
        ready = wait([worker.connection for worker in self.workers], timeout)
        for number, worker in enumerate(self.workers):
            if worker.connection not in ready:
                continue
            try:
                event = worker.connection.recv()
            except (EOFError, OSError):
                # The process is gone; another one takes its place.
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
    """A process and the line to it."""

    def __init__(self, runs: Path) -> None:
        # Spawned, not forked: a fork of a process that has used torch's threads can hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.job: Job | None = None
        self.process = context.Process(target=_serve, args=(theirs, runs), daemon=True)
        self.process.start()
        theirs.close()  # so that the line breaks when the process ends

    def begin(self, job: Job) -> None:
        self.job = job
        with suppress(OSError):  # the process is gone: the next look at the line says so
            self.connection.send(job)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(line: Connection, runs: Path) -> None:
    """Do what comes along the line until it breaks."""
    # Ctrl-C reaches every process of the terminal; the runner alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_freed()
    while True:
        try:
            job = line.recv()
            line.send(attempt(job, runs, partial(_tell, line, job)))
        except (EOFError, OSError):
            return


def _tell(line: Connection, job: Job, epoch: int) -> None:
    line.send(EpochDone(job, epoch))


def _end_with_parent() -> None:
    """A runner that was killed leaves nobody behind who trains on unheard."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
