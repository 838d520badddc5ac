"""Claims of the paper, counted in its own numbers and in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capnets.paper.compare import Comparison
from capnets.paper.compared import Compared, Number
from capnets.paper.names import CAPACITY, COUNTERPART, MODELS
from capnets.paper.resample import interval

__all__ = ["IMAGE_TASKS", "Case", "Claim", "Count", "count_claims", "least", "lower"]

IMAGE_TASKS = ("UC", "US", "WTri", "US+S", "TriC")


@dataclass(frozen=True)
class Case:
    """One comparison of two numbers.

    Attributes
    ----------
    replicates
        The same comparison with other test sets and seeds; None if their effect is unknown.
    complete
        True if all runs were made that both numbers should rest on.
    """

    holds: bool
    replicates: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)
    complete: bool = True


@dataclass(frozen=True)
class Count:
    """Number of cases in which a statement holds, of those that have numbers.

    Attributes
    ----------
    low, high
        95 % interval of `holds` over test sets and seeds; None if no case has replicates.
    unresampled
        Cases without replicates: a single seed, recorded without errors of blocks.
    incomplete
        Cases that rest on fewer runs than wanted.
    """

    holds: int
    cases: int
    low: int | None = field(default=None, compare=False)
    high: int | None = field(default=None, compare=False)
    unresampled: int = field(default=0, compare=False)
    incomplete: int = field(default=0, compare=False)

    @classmethod
    def of(cls, cases: Iterable[Case | None]) -> Count:
        """Count cases, where None is one without numbers."""
        known = [case for case in cases if case is not None]
        drawn = [case.replicates for case in known if case.replicates is not None]
        fixed = sum(case.holds for case in known if case.replicates is None)
        low = high = None
        if drawn:
            low, high = interval(fixed + np.sum(drawn, axis=0))
        return cls(
            sum(case.holds for case in known),
            len(known),
            low=low,
            high=high,
            unresampled=len(known) - len(drawn),
            incomplete=sum(not case.complete for case in known),
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, counted in our numbers and in its own.

    Attributes
    ----------
    says
        The claim, in our words.
    counted
        Definition of a case.
    scale, recipe
        Size and training recipe of our experiments on it.
    ours, paper
        Cases that agree in our numbers and in the printed ones.
    wanted
        Number of cases there are.
    """

    name: str
    says: str
    counted: str
    scale: str
    recipe: str
    ours: Count
    paper: Count
    wanted: int

    @classmethod
    def of(
        cls,
        compared: Compared,
        name: str,
        says: str,
        counted: str,
        ours: Sequence[Case | None],
        paper: Sequence[Case | None] = (),
    ) -> Claim:
        """Count the cases of a claim on a table."""
        scale, both = compared.scale, (Count.of(ours), Count.of(paper))
        return cls(name, says, counted, scale.name, scale.recipe, *both, wanted=len(ours))

    @property
    def verdict(self) -> str:
        """The verdict, judged at the unfavourable end of the 95 % interval."""
        ours = self.ours
        if not ours.cases:
            return "not run"
        if self.scale == "smoke":
            return "too small to say"
        if ours.low is None or ours.high is None:
            return "one seed, no interval"
        if ours.low > 0.75 * ours.cases:
            words = "holds"
        elif ours.low > 0.5 * ours.cases:
            words = "holds in most cases"
        else:
            words = "does not hold" if ours.high < 0.5 * ours.cases else "undecided"
        if ours.cases < self.wanted or ours.incomplete:
            words += " so far"
        return words if self.scale == "full" else f"{words} at scale {self.scale}"

    @property
    def limits(self) -> str:
        """Limitations of the count; empty if there are none."""
        ours = self.ours
        if not ours.cases:
            return ""
        parts = []
        if ours.cases < self.wanted:
            parts.append(f"{ours.cases} of {self.wanted} cases run")
        if ours.incomplete:
            parts.append(f"{ours.incomplete} with fewer runs than wanted")
        if ours.unresampled:
            parts.append(f"{ours.unresampled} with one seed and no interval")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {**asdict(self), "verdict": self.verdict}


#: Reads a number of a table: `Compared.found`, ours, or `Compared.claimed`, the paper's.
Reader = Callable[[Compared, str, str], Number | None]
Cases = Callable[[Comparison, Reader], list[Case | None]]


def count_claims(comparison: Comparison) -> tuple[Claim, ...]:
    """Count all claims."""
    found = []
    for name, table, says, counted, cases in CLAIMS:
        both = [cases(comparison, read) for read in (Compared.found, Compared.claimed)]
        found.append(Claim.of(comparison.tables[table], name, says, counted, *both))
    return tuple(found)


def lower(a: Number | None, b: Number | None) -> Case | None:
    """Return the case that the first number is below the second."""
    if a is None or b is None:
        return None
    first, second = a.replicates, b.replicates
    drawn = None if first is None or second is None else first < second
    return Case(a.value < b.value, drawn, a.complete and b.complete)


def least(numbers: Sequence[Number | None]) -> Number | None:
    """Return the smallest number; every replicate is the minimum of the replicates of all."""
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    best = min(known, key=lambda number: number.value)
    drawn = None
    if best.replicates is not None:  # the others may be of one seed, then they are fixed
        values = [n.value if n.replicates is None else n.replicates for n in known]
        drawn = np.min(np.broadcast_arrays(*values), axis=0)
    complete = len(known) == len(numbers) and all(number.complete for number in known)
    return Number(best.value, drawn, complete)


def _minus(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return None
    first, second = a.replicates, b.replicates
    drawn = None if first is None or second is None else first - second
    return Number(a.value - b.value, drawn, a.complete and b.complete)


def _counterpart(
    table: str, columns: tuple[str, ...], comparison: Comparison, read: Reader
) -> list[Case | None]:
    """Compare each capacity network with its counterpart."""
    compared = comparison.tables[table]
    return [
        lower(read(compared, model, column), read(compared, other, column))
        for model, other in COUNTERPART.items()
        for column in columns
    ]


def _best(comparison: Comparison, read: Reader) -> list[Case | None]:
    """Compare the best capacity network with the best of the others."""
    compared = comparison.tables["main-mean"]
    others = [model for model in MODELS if model not in CAPACITY]
    return [
        lower(*(least([read(compared, model, task) for model in g]) for g in (CAPACITY, others)))
        for task in IMAGE_TASKS
    ]


def _growth(
    table: str, pairs: tuple[tuple[str, str], ...], comparison: Comparison, read: Reader
) -> list[Case | None]:
    """Compare the lead over the counterpart in the second column of a pair with the first."""
    compared = comparison.tables[table]

    def lead(model: str, column: str) -> Number | None:
        return _minus(read(compared, COUNTERPART[model], column), read(compared, model, column))

    return [lower(lead(m, first), lead(m, second)) for m in CAPACITY for first, second in pairs]


def _without_abs(comparison: Comparison, read: Reader) -> list[Case | None]:
    without = comparison.tables["without-abs"]
    main = comparison.at("main-mean", without.scale)  # trained with the same recipe
    places = [(model, task) for model in CAPACITY for task in without.columns]
    return [lower(read(without, *place), read(main, *place)) for place in places]


def _prior(comparison: Comparison, read: Reader) -> list[Case | None]:
    """Compare final errors; the paper prints none, so it has no case."""
    compared = comparison.tables["regularisation"]
    return [lower(read(compared, "with prior", "final"), read(compared, "without prior", "final"))]


_TRAINING = tuple(f"{task} {sets}k" for task in ("US", "WTri", "US+S") for sets in (30, 50, 70))

CLAIMS: tuple[tuple[str, str, str, str, Cases], ...] = (
    (
        "counterpart",
        "main-mean",
        "A capacity network has a lower error than its counterpart, the recurrent network with "
        "the same cell.",
        "three pairs, five image tasks",
        partial(_counterpart, "main-mean", IMAGE_TASKS),
    ),
    (
        "counterpart-median",
        "main-median",
        "The same by medians over seeds, which are robust to a single run.",
        "three pairs, five image tasks",
        partial(_counterpart, "main-median", IMAGE_TASKS),
    ),
    (
        "best",
        "main-mean",
        "The best capacity network has a lower error than the best of the seven other networks.",
        "five image tasks",
        _best,
    ),
    (
        "larger-sets",
        "larger-sets",
        "The lead of a capacity network over its counterpart grows with the set size.",
        "three pairs; the difference of errors with 40 instances against 10",
        partial(_growth, "larger-sets", (("10", "40"),)),
    ),
    (
        "training-sizes",
        "training-absolute",
        "A capacity network also beats its counterpart with fewer training sets.",
        "three pairs, three tasks, with 30, 50 and 70 % of the sets",
        partial(_counterpart, "training-absolute", _TRAINING),
    ),
    (
        "less-data",
        "training-absolute",
        "The lead grows with fewer training sets (visible in the paper, not claimed by it).",
        "three pairs, three tasks; the difference of errors with 30 % of the sets against 70 %",
        partial(
            _growth,
            "training-absolute",
            tuple((f"{task} 70k", f"{task} 30k") for task in ("US", "WTri", "US+S")),
        ),
    ),
    (
        "varying-sizes",
        "varying-mean",
        "A capacity network also beats its counterpart when sets vary in size.",
        "three pairs, four tasks",
        partial(_counterpart, "varying-mean", ("US", "WTri", "US+S", "TriC")),
    ),
    (
        "order",
        "order-statistics",
        "A capacity network is less sensitive to the order of instances than its counterpart: "
        "its error varies less.",
        "three pairs on Unique Sum; the standard deviation of the error over five orders of the "
        "test sets (mean over seeds)",
        partial(_counterpart, "order-statistics", ("stdev",)),
    ),
    (
        "order-spread",
        "order-statistics",
        "The same per set: its predictions vary less.",
        "three pairs on Unique Sum; the standard deviation of a prediction over five orders (mean "
        "over sets and seeds); the paper has no such numbers",
        partial(_counterpart, "order-statistics", ("spread",)),
    ),
    (
        "prefixes",
        "prefix-added-values",
        "Added values of a capacity network are closer to the exact ones than prefix differences "
        "of its counterpart.",
        "three pairs, two tasks",
        partial(_counterpart, "prefix-added-values", ("WTri", "TriC")),
    ),
    (
        "without-abs",
        "without-abs",
        "Without the absolute value the error is lower.",
        "three capacity networks, four tasks; the paper claims it for several cases",
        _without_abs,
    ),
    (
        "regularisation",
        "regularisation",
        "The prior that no instance adds more than 1 lowers the error of C-GRU on Unique Count.",
        "one network; the paper draws curves and prints no numbers",
        _prior,
    ),
)
