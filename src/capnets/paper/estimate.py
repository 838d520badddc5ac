"""How long the rest will take, from what was seen so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from capnets.paper.jobs import Cell, Choice
from capnets.paper.names import RIDGE
from capnets.paper.results import Record
from capnets.paper.scheduler import Outcome
from capnets.training.recipe import recipe

__all__ = ["Estimate", "epochs_of"]

# Documents have their own number and sizes; about so many sentences are in the training part.
_SENTENCES = 80_000.0


class Estimate:
    """Seconds for seeing an instance once in training, by model.

    Parameters
    ----------
    records
        What was done before.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.instances: defaultdict[str, float] = defaultdict(float)
        for record in records:
            self.see(record)

    def see(self, record: Record) -> None:
        """Learn from what was done."""
        if not isinstance(record.choice, Cell) or record.failure is not None:
            return
        instances = record.metrics["epochs"] * _per_epoch(record.choice)
        if not instances:  # a baseline that is not trained
            return
        for group in (record.choice.model, "any"):
            self.seconds[group] += record.cost["train_seconds"]
            self.instances[group] += instances

    def left(self, outcome: Outcome) -> float | None:
        """Seconds until all is done; None: nothing was seen yet to judge by."""
        total = sum(self._of(choice, epoch=0) for choice in outcome.waiting)
        longest = 0.0
        for running in outcome.running.values():
            seconds = self._of(running.choice, epoch=running.epoch)
            total, longest = total + seconds, max(longest, seconds)
        # The workers of a cluster may all be gone for a while.
        return max(total / max(1, outcome.workers), longest) if self.instances else None

    def _of(self, choice: Choice, *, epoch: int) -> float:
        if not isinstance(choice, Cell) or not self.instances:
            return 0.0
        group = choice.model if choice.model in self.instances else "any"
        instances = (epochs_of(choice) - epoch) * _per_epoch(choice)
        return instances * self.seconds[group] / self.instances[group]


def epochs_of(choice: Choice) -> int:
    """How many epochs a choice takes at most; 0 where nothing is trained."""
    if not isinstance(choice, Cell) or choice.model == RIDGE:
        return 0
    return recipe(choice.recipe, epochs=choice.epochs).epochs


def _per_epoch(cell: Cell) -> float:
    """Instances of an epoch."""
    if cell.sets is None:
        return _SENTENCES
    return cell.sets * sum(cell.sizes) / len(cell.sizes)
