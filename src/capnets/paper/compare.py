"""What was found beside what was printed: every table at the largest scale that has records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from statistics import pstdev
from typing import Any, Literal

from capnets.errors import InputError
from capnets.paper.cells import Cell, Choice
from capnets.paper.results import Record
from capnets.paper.scales import SCALES, Scale
from capnets.paper.tables import TABLES, Entry, Table

__all__ = ["Compared", "Comparison", "Shown", "compare"]

Verdict = Literal["better", "equal", "worse"]
# Numbers that are to be equal (statistics of drawn labels) may differ by chance.
CLOSE = 0.01


@dataclass(frozen=True)
class Shown:
    """One entry of a table with what was found.

    Attributes
    ----------
    ours
        The number (or curve); None: nothing was found.
    deviation
        Over the seeds; None: a single seed, or a curve.
    done, wanted
        How many of its runs gave a number, and how many its scale asks for (or there are).
    failures
        What kept the others from it, if anything did.
    verdict
        Ours against the printed number; None: one of them is missing, or they cannot be compared.
    """

    entry: Entry
    ours: float | tuple[float, ...] | None
    deviation: float | None
    done: int
    wanted: int
    failures: tuple[str, ...]
    verdict: Verdict | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        entry = self.entry
        return {
            "row": entry.row,
            "column": entry.column,
            "ours": self.ours,
            "deviation": self.deviation,
            "paper": entry.published,
            "dash": entry.dash,
            "verdict": self.verdict,
            "done": self.done,
            "wanted": self.wanted,
            "failures": list(self.failures),
            "caveat": entry.caveat,
        }


@dataclass(frozen=True)
class Compared:
    """A table of the paper with what was found, under one protocol."""

    table: Table
    scale: Scale
    protocol: str
    shown: tuple[Shown, ...]

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str], Shown]:
        """What stands in a row and a column."""
        return {(s.entry.row, s.entry.column): s for s in self.shown}

    @property
    def rows(self) -> list[str]:
        """Its rows in order."""
        return list(dict.fromkeys(s.entry.row for s in self.shown))

    @property
    def columns(self) -> list[str]:
        """Its columns in order."""
        return list(dict.fromkeys(s.entry.column for s in self.shown))

    @property
    def printed(self) -> tuple[Shown, ...]:
        """The entries of the paper's own rows."""
        return tuple(s for s in self.shown if not s.entry.beyond)

    @property
    def beyond(self) -> tuple[Shown, ...]:
        """The entries of networks that the paper does not have: ours alone, below its rows."""
        return tuple(s for s in self.shown if s.entry.beyond)

    @property
    def beyond_rows(self) -> list[str]:
        """The rows of those networks."""
        return list(dict.fromkeys(s.entry.row for s in self.beyond))

    @property
    def done(self) -> int:
        """How many of its entries have a number of ours."""
        return sum(s.ours is not None for s in self.shown)

    @property
    def caveats(self) -> list[str]:
        """Why some numbers cannot be compared, each reason once."""
        return list(dict.fromkeys(s.entry.caveat for s in self.shown if s.entry.caveat))

    def ours(self, row: str, column: str) -> float | None:
        """A number of ours."""
        shown = self.by_place.get((row, column))
        return shown.ours if shown and isinstance(shown.ours, float) else None

    def paper(self, row: str, column: str) -> float | None:
        """A printed number."""
        shown = self.by_place.get((row, column))
        published = shown.entry.published if shown else None
        return published if isinstance(published, float) else None


@dataclass(frozen=True)
class Comparison:
    """All tables under one protocol, by name."""

    protocol: str
    tables: Mapping[str, Compared]


def compare(records: Mapping[str, Record], *, protocol: str) -> Comparison:
    """Every table of the paper beside what was found, each at one scale: the largest begun.

    All seeds count that were run, also those that the scale does not ask for. Runs that a table
    shares with the main table do not begin it: a few of them would hide a smaller experiment that
    was done completely.
    """
    if not records:
        raise InputError("there are no records to compare with the paper; run something first")
    cells = [record.choice for record in records.values() if isinstance(record.choice, Cell)]
    seeds = tuple(sorted({cell.seed for cell in cells}))
    compared = {}
    for table in TABLES.values():
        scale, entries = _at_scale(table, seeds, records)
        shown = tuple(_show(entry, table, scale, records, protocol) for entry in entries)
        compared[table.name] = Compared(table, scale, protocol, shown)
    return Comparison(protocol, compared)


def _at_scale(
    table: Table, seeds: tuple[int, ...], records: Mapping[str, Record]
) -> tuple[Scale, tuple[Entry, ...]]:
    largest_first = sorted(SCALES.values(), key=lambda scale: -scale.sets)
    begun: list[tuple[Scale, tuple[Entry, ...]]] = []
    for scale in largest_first:
        # Those that were run come first: what needs one seed only takes the first.
        every = replace(scale, seeds=(*seeds, *(s for s in scale.seeds if s not in seeds)))
        entries = table.entries(every)
        keys = _keys(entries)
        if not keys & records.keys():
            continue
        begun.append((scale, entries))
        if (keys - _keys(TABLES["main-mean"].entries(every)) or keys) & records.keys():
            return begun[-1]
    return begun[0] if begun else (largest_first[0], table.entries(largest_first[0]))


def _keys(entries: Iterable[Entry]) -> set[str]:
    return {choice.key for entry in entries for choice in entry.choices}


def _show(
    entry: Entry, table: Table, scale: Scale, records: Mapping[str, Record], protocol: str
) -> Shown:
    values, failures = _values(entry, entry.choices, records, protocol)
    others, more_failures = _values(entry, entry.minus, records, protocol)
    ours: float | tuple[float, ...] | None = None
    deviation = None
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
            choice.key in records or getattr(choice, "seed", 0) in scale.seeds
            for choice in entry.needed
        ),
        failures=tuple(dict.fromkeys(failures + more_failures)),
        verdict=_verdict(entry, table, ours) if _comparable(table, scale, protocol) else None,
    )


def _values(
    entry: Entry, choices: Iterable[Choice], records: Mapping[str, Record], protocol: str
) -> tuple[list[float | tuple[float, ...]], list[str]]:
    values, failures = [], []
    for choice in choices:
        if (record := records.get(choice.key)) is None:
            continue
        if record.failure is not None:
            failures.append(record.failure)
            continue
        metrics = record.under(protocol)
        if entry.reading.metric in metrics:
            values.append(entry.reading.of(metrics))
    return values, failures


def _comparable(table: Table, scale: Scale, protocol: str) -> bool:
    """Whether the printed numbers are a measure for ours.

    The paper has none for held-out images, and none for experiments smaller than its own, but for
    what does not depend on their size (parameters, statistics of labels).
    """
    return protocol == "shared" and (scale.name == "full" or table.better is None)


def _verdict(entry: Entry, table: Table, ours: float | tuple[float, ...] | None) -> Verdict | None:
    printed = entry.published
    if not isinstance(printed, float) or not isinstance(ours, float) or entry.caveat:
        return None
    if table.better is None:
        return "equal" if abs(ours - printed) <= CLOSE * abs(printed) else None
    if round(ours, 2) == round(printed, 2):
        return "equal"
    return "better" if (ours < printed) == (table.better == "lower") else "worse"
