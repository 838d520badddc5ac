"""Estimate the time that jobs take from finished ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from capnets.paper.jobs import Job, TrainingJob
from capnets.paper.names import RIDGE
from capnets.paper.results import Record
from capnets.paper.scheduler import Outcome
from capnets.training.recipe import recipe

__all__ = ["Estimate", "epochs_of"]

# Approximate number of sentences in the training documents.
_SENTENCES = 80_000.0


class Estimate:
    """Seconds per instance and epoch, by model and recipe.

    Parameters
    ----------
    records
        Finished jobs.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.instances: defaultdict[str, float] = defaultdict(float)
        for record in records:
            self.see(record)

    def see(self, record: Record) -> None:
        """Add a finished job."""
        if not isinstance(record.job, TrainingJob) or record.failure is not None:
            return
        instances = record.metrics["epochs"] * _per_epoch(record.job)
        if not instances:  # a baseline that is not trained
            return
        seconds = record.cost.get("cpu_seconds") or record.cost["train_seconds"]
        for group in (f"{record.job.model} {record.job.recipe}", record.job.model, "any"):
            self.seconds[group] += seconds
            self.instances[group] += instances

    def left(self, outcome: Outcome) -> float | None:
        """Return the seconds until all jobs are done; None if nothing is known yet."""
        total = sum(self._of(job, epoch=0) for job in outcome.waiting)
        longest = 0.0
        for running in outcome.running.values():
            seconds = self._of(running.job, epoch=running.epoch)
            total, longest = total + seconds, max(longest, seconds)
        # The workers of a cluster may all be gone for a while.
        return max(total / max(1, outcome.workers), longest) if self.instances else None

    def hours(self, jobs: Iterable[Job]) -> float | None:
        """Return the core hours of some jobs; None if nothing was seen yet."""
        if not self.instances:
            return None
        return sum(self._of(job, epoch=0) for job in jobs) / 3600

    def _of(self, job: Job, *, epoch: int) -> float:
        if not isinstance(job, TrainingJob) or not self.instances:
            return 0.0
        groups = (f"{job.model} {job.recipe}", job.model, "any")
        group = next(group for group in groups if group in self.instances)
        instances = (epochs_of(job) - epoch) * _per_epoch(job)
        return instances * self.seconds[group] / self.instances[group]


def epochs_of(job: Job) -> int:
    """Return the largest number of epochs of a job; 0 if nothing is trained."""
    if not isinstance(job, TrainingJob) or job.model == RIDGE:
        return 0
    return recipe(job.recipe, epochs=job.epochs).epochs


def _per_epoch(job: TrainingJob) -> float:
    """Return the number of instances of an epoch."""
    if job.sets is None:
        return _SENTENCES
    return job.sets * sum(job.sizes) / len(job.sizes)
