"""Tables of the paper: entries, each with its jobs and the printed number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from statistics import fmean, median, pstdev
from typing import Any, Literal, TypeVar

from capnets.errors import InputError
from capnets.paper.jobs import Job, TrainingJob
from capnets.paper.names import BEYOND
from capnets.paper.scales import PAPER_RECIPE, Scale

__all__ = ["Entry", "Published", "Reading", "Statistic", "Table", "grid", "vary"]

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
        Index into a metric that is a list; None if the metric is a number or is shown as a whole
        (a curve).
    within
        Statistic over a metric that is a list.
    exact
        Exact values of a metric that is a list. The entry then shows distances from them, with
        their sum last.
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
        Position in the table.
    jobs
        Its jobs, one per seed; None if the entry is not part of this scale.
    minus
        Runs whose statistic is subtracted (a difference from the counterpart).
    statistic
        Statistic over the seeds.
    published
        The printed number; None if there is none.
    dash
        True if the paper prints a dash: the network did not converge.
    caveat
        Reason why the printed number cannot be compared with ours, if there is one.
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
        Number in the paper, such as "Table 1"; an alternative name of the table.
    shows
        Description in one sentence.
    better
        Whether lower or higher numbers are better; None if they should be equal.
    build
        Function that returns the entries at a scale.
    exact
        Rows of exact numbers that need no run, by row and column; shown above the others.
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

    def entries(self, scale: Scale) -> tuple[Entry, ...]:
        """Return the entries, row by row.

        Networks beyond the paper are trained with recipes of ours only.
        """
        entries = self.build(scale)
        if scale.recipe != PAPER_RECIPE:
            return entries
        return tuple(entry for entry in entries if not entry.beyond)


def grid(
    scale: Scale,
    printed: Mapping[str, Mapping[Any, float]],
    models: Sequence[str],
    reading: Reading | Callable[[Any], Reading],
    *,
    columns: Iterable[Any] | None = None,
    task: str | None = None,
    statistic: Statistic = "mean",
    changes: Callable[[Any], dict[str, Any]] = lambda column: {},
    caveat: Callable[[Any], str] = lambda column: "",
) -> tuple[Entry, ...]:
    """Return one entry per network and column of a printed table.

    Parameters
    ----------
    reading
        The number to show, for all columns or by column.
    columns
        The columns, if not those of the printed table.
    task
        The task of all entries; None if columns are tasks.
    changes
        Settings of the jobs that differ from the main table, by column.
    caveat
        Reason why a column cannot be compared; empty if it can.
    """
    every = tuple(next(iter(printed.values())) if columns is None else columns)
    return tuple(
        Entry(
            row=model,
            column=str(column),
            model=model,
            task=task or column,
            reading=reading(column) if callable(reading) else reading,
            statistic=statistic,
            jobs=vary(scale.jobs(model, task or column), **changes(column)),
            published=None if model in BEYOND else printed[model].get(column),
            caveat=caveat(column),
        )
        for model in models
        for column in every
    )


def vary(jobs: tuple[TrainingJob, ...], **changes: Any) -> tuple[TrainingJob, ...]:
    """Return the same jobs with some settings changed."""
    return tuple(replace(job, **changes) for job in jobs)
