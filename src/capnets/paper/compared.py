"""Numbers of a table: ours beside the printed ones, with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal

from numpy.typing import NDArray

from capnets.paper.resample import replicates
from capnets.paper.scales import Scale
from capnets.paper.tables import Entry, Table

__all__ = ["Compared", "Number", "Shown", "Verdict"]

Verdict = Literal["better", "equal", "worse", "differs"]


@dataclass(frozen=True)
class Number:
    """A number with its uncertainty.

    Attributes
    ----------
    replicates
        Values with other test sets and seeds (see `resample`); None if unknown.
    complete
        True if all seeds were run that the scale asks for.
    """

    value: float
    replicates: NDArray[Any] | None = field(default=None, compare=False, repr=False)
    complete: bool = True


@dataclass(frozen=True)
class Shown:
    """One entry of a table with its result.

    Attributes
    ----------
    ours
        The number (or curve); None without a result.
    deviation
        Standard deviation over seeds; None for a single seed or a curve.
    seeds
        The number of each seed.
    blocks
        For an error: of each seed, the errors on blocks of test sets; empty if not recorded.
    done, wanted
        Number of runs with a result, and number of runs that the scale asks for (or there are).
    failures
        Failures of the other runs.
    verdict
        Ours against the printed number; None if one of them is missing, if they cannot be
        compared, or if a seed failed.
    """

    entry: Entry
    ours: float | tuple[float, ...] | None
    deviation: float | None
    done: int
    wanted: int
    failures: tuple[str, ...]
    verdict: Verdict | None
    seeds: tuple[float, ...] = ()
    blocks: tuple[tuple[float, ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
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
    """A table of the paper with results, under one protocol."""

    table: Table
    scale: Scale
    protocol: str
    shown: tuple[Shown, ...]

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str], Shown]:
        """Entries by row and column."""
        return {(s.entry.row, s.entry.column): s for s in self.shown}

    @property
    def rows(self) -> list[str]:
        """Names of rows, in order."""
        return list(dict.fromkeys(s.entry.row for s in self.shown))

    @property
    def columns(self) -> list[str]:
        """Names of columns, in order."""
        return list(dict.fromkeys(s.entry.column for s in self.shown))

    @property
    def printed(self) -> tuple[Shown, ...]:
        """Entries of the paper's networks."""
        return tuple(s for s in self.shown if not s.entry.beyond)

    @property
    def beyond(self) -> tuple[Shown, ...]:
        """Entries of networks beyond the paper."""
        return tuple(s for s in self.shown if s.entry.beyond)

    @property
    def beyond_rows(self) -> list[str]:
        """Rows of networks beyond the paper."""
        return list(dict.fromkeys(s.entry.row for s in self.beyond))

    @property
    def done(self) -> int:
        """Number of entries with a result."""
        return sum(s.ours is not None for s in self.shown)

    @property
    def caveats(self) -> list[str]:
        """Reasons why some numbers cannot be compared, each once."""
        return list(dict.fromkeys(s.entry.caveat for s in self.shown if s.entry.caveat))

    def ours(self, row: str, column: str) -> float | None:
        """Return a number of ours."""
        shown = self.by_place.get((row, column))
        return shown.ours if shown and isinstance(shown.ours, float) else None

    def paper(self, row: str, column: str) -> float | None:
        """Return a printed number."""
        shown = self.by_place.get((row, column))
        published = shown.entry.published if shown else None
        return published if isinstance(published, float) else None

    def found(self, row: str, column: str) -> Number | None:
        """Return a number of ours with its uncertainty; None if a seed failed.

        Where errors of blocks were recorded, the number is the error on the larger draw.
        """
        shown = self.by_place.get((row, column))
        if shown is None or not isinstance(shown.ours, float) or shown.failures:
            return None
        value, seeds = shown.ours, shown.seeds
        if shown.blocks:
            seeds = tuple(map(fmean, shown.blocks))
            value = shown.entry.of_seeds(list(seeds))
        name = f"{self.table.name} {self.protocol} {row} {column}"
        drawn = replicates(value, seeds, shown.blocks, name=name)
        return Number(value, drawn, complete=shown.done >= shown.wanted)

    def claimed(self, row: str, column: str) -> Number | None:
        """Return a printed number in the same form."""
        value = self.paper(row, column)
        return None if value is None else Number(value)
