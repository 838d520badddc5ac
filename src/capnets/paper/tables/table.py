"""Tables of the paper: entries, each with its jobs and the printed number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from statistics import fmean, median, pstdev
from typing import Any, Literal, TypeVar

from capnets.errors import InputError
from capnets.paper.jobs import Job, TrainingJob
from capnets.paper.names import BEYOND
from capnets.paper.scales import PAPER_RECIPE, Scale

__all__ = ["Entry", "Published", "Reading", "Statistic", "Table", "row_of", "vary"]

Statistic = Literal["mean", "median", "stdev"]
Published = float | tuple[float, ...] | None
Column = TypeVar("Column")

# The paper's deviations divide by the number of runs, see `published.inconsistencies`.
_STATISTICS: dict[Statistic, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "stdev": pstdev,
}


@dataclass(frozen=True)
class Reading:
    """The number of a record that an entry shows.

    Attributes
    ----------
    metric
        Its name in the record, such as "mse".
    position
        Which of a list, for a metric that is one; None: the metric is a number, or all of it is
        shown (a curve).
    within
        The statistic of such a list.
    exact
        What such a list should begin with: instead of its numbers their distances from these are
        read, the sum of the distances last.
    times
        Factor from the record's unit to the paper's.

    Examples
    --------
    >>> Reading("order_mse", within="median").of({"order_mse": [0.3, 0.1, 0.2]})
    0.2
    """

    metric: str
    position: int | None = None
    within: Statistic | None = None
    exact: tuple[float, ...] = ()
    times: int = 1

    def of(self, record: Mapping[str, Any]) -> float | tuple[float, ...]:
        """Return the number in a record's metrics."""
        if self.metric not in record:
            raise InputError(f"the record has no {self.metric!r}, only {', '.join(record)}")
        value = record[self.metric]
        if self.exact:
            value = _distances(value[: len(self.exact)], self.exact)
        if self.within is not None:
            return self.times * _STATISTICS[self.within](list(value))
        if self.position is not None:
            return self.times * float(value[self.position])
        if isinstance(value, list | tuple):
            return tuple(self.times * float(number) for number in value)
        return self.times * float(value)


def _distances(values: Sequence[float], exact: Sequence[float]) -> list[float]:
    distances = [abs(value - number) for value, number in zip(values, exact, strict=True)]
    return [*distances, sum(distances)]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One number (or curve) of a table.

    Attributes
    ----------
    row, column
        Where it stands.
    jobs
        What it is made of: a run for each seed. None: not part of this scale.
    minus
        Runs whose statistic is subtracted (a difference from the counterpart).
    statistic
        Over the seeds.
    published
        What the paper prints; None if it prints nothing.
    dash
        The paper prints a dash: the network did not converge.
    caveat
        Why the printed number cannot be held against ours, if it cannot.
    """

    row: str
    column: str
    reading: Reading
    jobs: tuple[Job, ...]
    minus: tuple[Job, ...] = ()
    statistic: Statistic = "mean"
    published: Published = None
    dash: bool = False
    caveat: str = ""
    model: str | None = None
    task: str | None = None

    @property
    def needed(self) -> tuple[Job, ...]:
        """All jobs of this entry."""
        return self.jobs + self.minus

    @property
    def beyond(self) -> bool:
        """True for a network beyond the paper."""
        return self.model in BEYOND

    def of_seeds(self, values: list[float]) -> float:
        """Return the statistic over seeds; NaN for the deviation of a single seed."""
        if self.statistic == "stdev" and len(values) == 1:
            return nan
        return _STATISTICS[self.statistic](values)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table or figure of the paper.

    Attributes
    ----------
    number
        Where it is in the paper, such as "Table 1"; also found by it.
    shows
        One sentence for the reader.
    better
        Whether lower or higher numbers are better; None: they are to be equal.
    build
        Its entries at a scale.
    exact
        Rows of numbers that follow from what the table is about and need no run, by row and
        column: they stand above the others.
    """

    name: str
    number: str
    title: str
    shows: str
    build: Callable[[Scale], tuple[Entry, ...]] = field(repr=False)
    better: Literal["lower", "higher"] | None = "lower"
    exact: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False, hash=False)
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that find the table."""
        return (self.name, self.number.lower().replace(" ", ""), *self.aliases)

    @property
    def figure(self) -> bool:
        """True if the paper draws it."""
        return self.number.startswith("Figure")

    def entries(self, scale: Scale) -> tuple[Entry, ...]:
        """Return the entries, row by row.

        Networks beyond the paper are trained with recipes of ours only.
        """
        entries = self.build(scale)
        if scale.recipe != PAPER_RECIPE:
            return entries
        return tuple(entry for entry in entries if not entry.beyond)


def row_of(
    printed: Mapping[str, Mapping[Column, float]], model: str
) -> Mapping[Column, float | None]:
    """Return the printed row of a network; for one beyond the paper, columns without numbers.

    >>> row_of({"rnn": {"US": 0.91}}, "c-deepset")
    {'US': None}
    """
    return printed[model] if model not in BEYOND else dict.fromkeys(next(iter(printed.values())))


def vary(jobs: tuple[TrainingJob, ...], **changes: Any) -> tuple[TrainingJob, ...]:
    """Return the same jobs with some settings changed."""
    return tuple(replace(job, **changes) for job in jobs)
