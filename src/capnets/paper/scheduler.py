"""Run the missing jobs of a plan with a pool of workers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from capnets.errors import InputError
from capnets.paper.jobs import Job, TrainingJob
from capnets.paper.plan import Plan
from capnets.paper.pool import EpochDone, Event, JobDone, LocalWorkers, WorkerLost, Workers
from capnets.paper.results import Record, Results, Writer

__all__ = ["Outcome", "Running", "reproduce"]

# A job is given up after its worker died this often.
ATTEMPTS = 3

Watch = Callable[[Event | None, "Outcome"], None]


@dataclass
class Running:
    """A job that was started, and its number of finished epochs."""

    job: Job
    epoch: int = 0


@dataclass
class Outcome:
    """State of a reproduction.

    Attributes
    ----------
    records
        Records of finished jobs.
    waiting
        Jobs that have not started.
    running
        Jobs that have started.
    errors
        Jobs that could not run, with the reason; they are not recorded.
    workers
        Current number of workers.
    """

    records: dict[str, Record]
    waiting: deque[Job]
    running: dict[str, Running] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    workers: int = 1

    @property
    def complete(self) -> bool:
        """True if all jobs have a record."""
        return not (self.waiting or self.running or self.errors)


def reproduce(
    plan: Plan,
    folder: str | Path,
    *,
    processes: int | None = None,
    cluster: str | None = None,
    retry: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Run the jobs of a plan that have no record, and record them.

    Parameters
    ----------
    folder
        The results folder; created if it does not exist.
    processes
        Number of local processes; None means one.
    cluster
        Address of a Dask scheduler whose workers to use instead.
    retry
        Run failed jobs again.
    watch
        Called with every event, and with None at the start and when nothing happens for a while.
    """
    from capnets.paper.execute import current

    if processes is not None and cluster is not None:
        raise InputError("processes and cluster exclude each other: a cluster has its own workers")
    processes = 1 if processes is None else processes
    if processes < 1:
        raise InputError(f"processes must be at least 1, not {processes}")
    results = Results(folder, create=True)
    with results.hold() as writer:
        there = {
            key: record
            for key, record in current(results.read()).items()
            if key in plan.jobs and not (retry and record.failure)
        }
        missing = deque(c for key, c in plan.jobs.items() if key not in there)
        outcome = Outcome(there, missing)
        if not missing:
            return outcome
        workers = _workers(results.runs, min(processes, len(missing)), cluster)
        try:
            _work(outcome, workers, writer, watch)
        finally:
            workers.stop()
    return outcome


def _workers(runs: Path, processes: int, cluster: str | None) -> Workers:
    runs = runs.resolve()
    if cluster is None:
        return LocalWorkers(processes, runs=runs)
    from capnets.paper.cluster import ClusterWorkers

    return ClusterWorkers(cluster, runs=runs)


def _work(outcome: Outcome, workers: Workers, writer: Writer, watch: Watch | None) -> None:
    lost: Counter[str] = Counter()
    unusable: dict[str, str] = {}
    seconds = 0.0  # show the initial state
    while outcome.waiting or outcome.running:
        _hand_out(outcome, workers, unusable)
        events = workers.events(timeout=seconds)
        seconds = 1.0
        for event in chain([next(events, None)], events):
            if event is None:
                pass  # nothing happened; refresh the display
            elif isinstance(event, EpochDone):
                outcome.running[event.job.key].epoch = event.epoch
            elif isinstance(event, JobDone):
                _keep(event.record, outcome, writer)
            elif isinstance(event, WorkerLost):
                key = event.job.key
                lost[key] += 1
                if lost[key] < ATTEMPTS and not event.final:
                    del outcome.running[key]
                    outcome.waiting.appendleft(event.job)
                else:
                    _keep(_killed(event.job), outcome, writer)
            else:
                del outcome.running[event.job.key]
                outcome.errors[event.job.key] = event.message
                if event.no_data and isinstance(event.job, TrainingJob):
                    # The same data is missing for everything else that needs it.
                    unusable[event.job.source] = event.message
            if watch is not None:
                watch(event, outcome)


def _hand_out(outcome: Outcome, workers: Workers, unusable: Mapping[str, str]) -> None:
    """Submit jobs while workers are idle; skip those whose data source is unusable."""
    outcome.workers = workers.count
    while outcome.waiting and workers.room():
        job = outcome.waiting.popleft()
        if isinstance(job, TrainingJob) and job.source in unusable:
            outcome.errors[job.key] = unusable[job.source]
            continue
        outcome.running[job.key] = Running(job)
        workers.submit(job)


def _keep(record: Record, outcome: Outcome, writer: Writer) -> None:
    writer.append(record)
    del outcome.running[record.key]
    outcome.records[record.key] = record


def _killed(job: Job) -> Record:
    from capnets.paper.execute import made

    return Record(
        job=job,
        metrics={},
        failure="killed",
        reason=f"its process ended {ATTEMPTS} times or more, as happens where memory runs out",
        made=made(job),
        cost={},
    )
