"""Compare results with printed numbers, table by table, each at one scale and recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isnan
from statistics import pstdev

from capnets.errors import InputError
from capnets.paper.compared import Compared, Shown, Verdict
from capnets.paper.jobs import Job, TrainingJob
from capnets.paper.results import Record
from capnets.paper.scales import Scale, every_scale
from capnets.paper.tables import TABLES, Entry, Table

__all__ = ["Comparison", "compare"]

# Relative tolerance for statistics of drawn labels.
CLOSE = 0.01
# Metrics that are compared exactly.
EXACT = ("parameters",)


@dataclass(frozen=True)
class Comparison:
    """All tables under one protocol, by name, each at its own scale."""

    protocol: str
    tables: Mapping[str, Compared]
    records: Mapping[str, Record] = field(repr=False)

    def at(self, name: str, scale: Scale) -> Compared:
        """Return a table at the scale of another one, to compare the two."""
        if self.tables[name].scale == scale:
            return self.tables[name]
        entries = _entries(TABLES[name], scale, _seeds(self.records), self.records)
        return _compared(TABLES[name], scale, entries, self.records, self.protocol)


def compare(
    records: Mapping[str, Record], *, protocol: str, scales: Sequence[Scale] = ()
) -> Comparison:
    """Compare every table of the paper with records, each at one scale and recipe.

    All seeds count, also those that the scale does not ask for.

    Parameters
    ----------
    scales
        Scales to choose from; a table has the first that was begun. By default all, the largest
        first.
    """
    scales = scales or every_scale()
    if not records:
        raise InputError("there are no records to compare with the paper: run something first")
    seeds = _seeds(records)
    main = [_keys(_entries(TABLES["main-mean"], scale, seeds, records)) for scale in scales]
    compared = {}
    for table in TABLES.values():
        at, entries = _first_begun(table, scales, main, seeds, records)
        compared[table.name] = _compared(table, at, entries, records, protocol)
    return Comparison(protocol, compared, records)


def _seeds(records: Mapping[str, Record]) -> tuple[int, ...]:
    jobs = [record.job for record in records.values() if isinstance(record.job, TrainingJob)]
    return tuple(sorted({job.seed for job in jobs}))


def _compared(
    table: Table,
    scale: Scale,
    entries: Iterable[Entry],
    records: Mapping[str, Record],
    protocol: str,
) -> Compared:
    shown = tuple(_show(entry, table, scale, records, protocol) for entry in entries)
    return Compared(table, scale, protocol, shown)


def _first_begun(
    table: Table,
    scales: Sequence[Scale],
    main: Sequence[set[str]],
    seeds: tuple[int, ...],
    records: Mapping[str, Record],
) -> tuple[Scale, tuple[Entry, ...]]:
    """Return the first scale with a result that belongs to this table and scale alone.

    Results shared with the main table, or between scales (documents are the same at every scale),
    do not count: they would hide a smaller experiment that is complete. Nor do failures.
    """
    at = [(scale, _entries(table, scale, seeds, records)) for scale in scales]
    keys = [_keys(entries) for _, entries in at]
    good = {key for key, record in records.items() if record.failure is None}
    for results in (good, set(records)):
        for k, mine in enumerate(keys):
            others = set().union(*keys[:k], *keys[k + 1 :])
            alone = (mine - others - main[k]) or (mine - others) or mine
            if alone & results:
                return at[k]
    return next((a for a, mine in zip(at, keys, strict=True) if mine & records.keys()), at[0])


def _entries(
    table: Table, scale: Scale, seeds: tuple[int, ...], records: Mapping[str, Record]
) -> tuple[Entry, ...]:
    """Return the entries with every seed; one of a single seed takes the first that was run."""
    every = tuple(dict.fromkeys((*seeds, *scale.seeds)))
    entries = _built(table.name, replace(scale, seeds=every))
    for k, seed in enumerate(every[1:], start=1):
        missing = [len(e.needed) == 1 and e.needed[0].key not in records for e in entries]
        if not any(missing):
            break
        others = _built(table.name, replace(scale, seeds=(seed, *every[:k], *every[k + 1 :])))
        entries = tuple(
            other if gone and other.needed[0].key in records else entry
            for entry, other, gone in zip(entries, others, missing, strict=True)
        )
    return entries


@cache
def _built(name: str, scale: Scale) -> tuple[Entry, ...]:
    """Build the entries of a table; cached, as both protocols need them and their keys."""
    return TABLES[name].entries(scale)


def _keys(entries: Iterable[Entry]) -> set[str]:
    return {job.key for entry in entries for job in entry.jobs}


def _show(
    entry: Entry, table: Table, scale: Scale, records: Mapping[str, Record], protocol: str
) -> Shown:
    values, failures = _values(entry, entry.jobs, records, protocol)
    others, more_failures = _values(entry, entry.minus, records, protocol)
    ours: float | tuple[float, ...] | None = None
    deviation = None
    numbers: list[float] = []
    if values and (others or not entry.minus):
        if isinstance(values[0], tuple):
            ours = values[0]
        else:
            numbers = [value for value in values if isinstance(value, float)]
            ours = entry.of_seeds(numbers)
            if entry.minus:
                ours -= entry.of_seeds([value for value in others if isinstance(value, float)])
            if len(numbers) > 1 and entry.statistic != "stdev" and not entry.minus:
                deviation = pstdev(numbers)
            if isnan(ours):  # the deviation of one seed
                ours = None
    return Shown(
        entry,
        ours,
        deviation,
        done=len(values) + len(others),
        wanted=sum(
            job.key in records or getattr(job, "seed", 0) in scale.seeds for job in entry.needed
        ),
        failures=tuple(dict.fromkeys(failures + more_failures)),
        seeds=tuple(numbers),
        blocks=_blocks(entry, records, protocol),
        verdict=_verdict(entry, table, ours)
        if _comparable(table, scale, protocol) and not failures + more_failures
        else None,
    )


def _blocks(
    entry: Entry, records: Mapping[str, Record], protocol: str
) -> tuple[tuple[float, ...], ...]:
    """Return the errors of every seed on blocks of test sets, or nothing if any lacks them."""
    if entry.reading.metric != "mse" or entry.statistic == "stdev" or entry.minus:
        return ()
    done = [records[job.key] for job in entry.jobs if job.key in records]
    blocks = [tuple(r.under(protocol).get("block_mse", ())) for r in done if r.failure is None]
    return tuple(blocks) if all(blocks) and len(set(map(len, blocks))) == 1 else ()


def _values(
    entry: Entry, jobs: Iterable[Job], records: Mapping[str, Record], protocol: str
) -> tuple[list[float | tuple[float, ...]], list[str]]:
    values, failures = [], []
    for job in jobs:
        if (record := records.get(job.key)) is None:
            continue
        if record.failure is not None:
            failures.append(record.failure)
            continue
        metrics = record.under(protocol)
        if entry.reading.metric in metrics:
            values.append(entry.reading.of(metrics))
    return values, failures


def _comparable(table: Table, scale: Scale, protocol: str) -> bool:
    """Return whether ours can be compared with printed numbers.

    The paper has none for held-out images, and none for smaller experiments, except for what does
    not depend on their size (parameters, statistics of labels).
    """
    return protocol == "shared" and (scale.name == "full" or table.better is None)


def _verdict(entry: Entry, table: Table, ours: float | tuple[float, ...] | None) -> Verdict | None:
    printed = entry.published
    if not isinstance(printed, float) or not isinstance(ours, float) or entry.caveat:
        return None
    if table.better is None:
        close = 0.0 if entry.reading.metric in EXACT else CLOSE * abs(printed)
        return "equal" if abs(ours - printed) <= close else "differs"
    if round(ours, 2) == round(printed, 2):
        return "equal"
    return "better" if (ours < printed) == (table.better == "lower") else "worse"
