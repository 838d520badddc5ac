"""What the paper claims, counted in its own numbers and in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from capnets.paper.compare import Compared, Comparison, Number
from capnets.paper.names import CAPACITY, COUNTERPART, MODELS

__all__ = ["IMAGE_TASKS", "Case", "Claim", "Count", "count_claims", "least", "lower"]

IMAGE_TASKS = ("UC", "US", "WTri", "US+S", "TriC")


@dataclass(frozen=True)
class Case:
    """One comparison of two numbers.

    Attributes
    ----------
    close
        Whether they are no further apart than their deviations over seeds together.
    complete
        Whether all was run that both should rest on.
    """

    holds: bool
    close: bool = False
    complete: bool = True


@dataclass(frozen=True)
class Count:
    """In how many of how many cases something holds; cases without numbers are not counted."""

    holds: int
    cases: int
    close: int = field(default=0, compare=False)
    incomplete: int = field(default=0, compare=False)

    @classmethod
    def of(cls, cases: Iterable[Case | None]) -> Count:
        """Count cases, where None is one without numbers."""
        known = [case for case in cases if case is not None]
        return cls(
            sum(case.holds for case in known),
            len(known),
            close=sum(case.close for case in known),
            incomplete=sum(not case.complete for case in known),
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    says
        The claim, in our words.
    counted
        What a case is.
    scale, recipe
        How large our experiments on it were, and how their networks were trained.
    ours, paper
        In how many cases our numbers and its own numbers agree.
    wanted
        How many cases there are.
    """

    name: str
    says: str
    counted: str
    scale: str
    recipe: str
    ours: Count
    paper: Count
    wanted: int

    @property
    def verdict(self) -> str:
        """Whether it holds here, in words."""
        if not self.ours.cases:
            return "not run"
        if self.scale == "smoke":
            return "too small to say"
        share = self.ours.holds / self.ours.cases
        words = "holds" if share > 0.75 else "holds in part" if share >= 0.5 else "does not hold"
        if self.ours.cases < self.wanted or self.ours.incomplete:
            words += " so far"
        return words if self.scale == "full" else f"{words} at scale {self.scale}"

    @property
    def doubt(self) -> str:
        """What the verdict rests on less firmly than its count looks; empty: nothing."""
        ours = self.ours
        if not ours.cases:
            return ""
        told = []
        if ours.cases < self.wanted:
            told.append(f"{ours.cases} of {self.wanted} were run")
        if ours.incomplete:
            told.append(f"{ours.incomplete} rest on fewer runs than wanted")
        if ours.close:
            told.append(f"in {ours.close} the numbers are within their deviations over seeds")
        return "; ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {**asdict(self), "verdict": self.verdict}


#: Reads a number of a table: `Compared.found`, ours, or `Compared.claimed`, the paper's.
Reader = Callable[[Compared, str, str], Number | None]
Cases = Callable[[Comparison, Reader], list[Case | None]]


def count_claims(comparison: Comparison) -> tuple[Claim, ...]:
    """All claims, counted."""
    return tuple(
        Claim(
            name,
            says,
            counted,
            scale=comparison.tables[table].scale.name,
            recipe=comparison.tables[table].scale.recipe,
            ours=Count.of(ours := cases(comparison, Compared.found)),
            paper=Count.of(cases(comparison, Compared.claimed)),
            wanted=len(ours),
        )
        for name, table, says, counted, cases in CLAIMS
    )


def lower(a: Number | None, b: Number | None) -> Case | None:
    """The first number below the second."""
    if a is None or b is None:
        return None
    known = a.deviation is not None and b.deviation is not None
    apart = (a.deviation or 0.0) + (b.deviation or 0.0)
    close = known and abs(a.value - b.value) <= apart
    return Case(a.value < b.value, close, a.complete and b.complete)


def least(numbers: Sequence[Number | None]) -> Number | None:
    """The smallest; it rests on all of them."""
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    best = min(known, key=lambda number: number.value)
    complete = len(known) == len(numbers) and all(number.complete for number in known)
    return Number(best.value, best.deviation, complete)


def _minus(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return None
    known = a.deviation is not None and b.deviation is not None
    deviation = (a.deviation or 0.0) + (b.deviation or 0.0) if known else None
    return Number(a.value - b.value, deviation, a.complete and b.complete)


def _counterpart(
    table: str, columns: tuple[str, ...], comparison: Comparison, read: Reader
) -> list[Case | None]:
    """Capacity network below its counterpart."""
    compared = comparison.tables[table]
    return [
        lower(read(compared, model, column), read(compared, other, column))
        for model, other in COUNTERPART.items()
        for column in columns
    ]


def _best(comparison: Comparison, read: Reader) -> list[Case | None]:
    """The best capacity network below the best of the others."""
    compared = comparison.tables["main-mean"]
    others = [model for model in MODELS if model not in CAPACITY]
    return [
        lower(*(least([read(compared, model, task) for model in g]) for g in (CAPACITY, others)))
        for task in IMAGE_TASKS
    ]


def _growth(
    table: str, pairs: tuple[tuple[str, str], ...], comparison: Comparison, read: Reader
) -> list[Case | None]:
    """The lead over the counterpart larger in the second column of a pair than in the first."""
    compared = comparison.tables[table]

    def lead(model: str, column: str) -> Number | None:
        return _minus(read(compared, COUNTERPART[model], column), read(compared, model, column))

    return [lower(lead(m, first), lead(m, second)) for m in CAPACITY for first, second in pairs]


def _without_abs(comparison: Comparison, read: Reader) -> list[Case | None]:
    without = comparison.tables["without-abs"]
    main = comparison.at("main-mean", without.scale)  # networks that were trained alike
    places = [(model, task) for model in CAPACITY for task in without.columns]
    return [lower(read(without, *place), read(main, *place)) for place in places]


def _prior(comparison: Comparison, read: Reader) -> list[Case | None]:
    """The paper draws curves and prints no numbers, so it has no case."""
    compared = comparison.tables["regularisation"]
    return [lower(read(compared, "with prior", "final"), read(compared, "without prior", "final"))]


_TRAINING = tuple(f"{task} {sets}k" for task in ("US", "WTri", "US+S") for sets in (30, 50, 70))

CLAIMS: tuple[tuple[str, str, str, str, Cases], ...] = (
    (
        "counterpart",
        "main-mean",
        "A capacity network predicts better than its counterpart, the recurrent network with the "
        "same job.",
        "three pairs, five image tasks",
        partial(_counterpart, "main-mean", IMAGE_TASKS),
    ),
    (
        "counterpart-median",
        "main-median",
        "The same by the medians of the runs, which one lucky or unlucky run does not move.",
        "three pairs, five image tasks",
        partial(_counterpart, "main-median", IMAGE_TASKS),
    ),
    (
        "best",
        "main-mean",
        "The best capacity network predicts better than the best of the seven other networks.",
        "five image tasks",
        _best,
    ),
    (
        "larger-sets",
        "larger-sets",
        "A capacity network's lead over its counterpart grows with the size of the sets.",
        "three pairs, the difference of their errors with 40 instances against that with 10",
        partial(_growth, "larger-sets", (("10", "40"),)),
    ),
    (
        "training-sizes",
        "training-absolute",
        "A capacity network is ahead of its counterpart also with fewer training sets.",
        "three pairs, three tasks, with 30, 50 and 70 % of the sets",
        partial(_counterpart, "training-absolute", _TRAINING),
    ),
    (
        "less-data",
        "training-absolute",
        "Its lead grows when there are fewer training sets (the paper shows this and does not say "
        "it).",
        "three pairs, three tasks, the difference of their errors with 30 % of the sets against "
        "that with 70 %",
        partial(
            _growth,
            "training-absolute",
            tuple((f"{task} 70k", f"{task} 30k") for task in ("US", "WTri", "US+S")),
        ),
    ),
    (
        "varying-sizes",
        "varying-mean",
        "A capacity network is ahead of its counterpart also when sets differ in size.",
        "three pairs, four tasks",
        partial(_counterpart, "varying-mean", ("US", "WTri", "US+S", "TriC")),
    ),
    (
        "order",
        "order-statistics",
        "A capacity network depends less on the order of the instances than its counterpart: "
        "its error changes less.",
        "three pairs on Unique Sum, the standard deviation of a network's error over five orders "
        "of its test sets (the mean over seeds)",
        partial(_counterpart, "order-statistics", ("stdev",)),
    ),
    (
        "order-spread",
        "order-statistics",
        "The same, set by set: its predictions change less.",
        "three pairs on Unique Sum, the deviation of the prediction for a set over five orders "
        "(the mean over sets and seeds); the paper has no such numbers",
        partial(_counterpart, "order-statistics", ("spread",)),
    ),
    (
        "prefixes",
        "prefix-added-values",
        "A capacity network's added values are nearer to the exact ones than what its counterpart "
        "gives: differences of predictions for ever longer prefixes.",
        "three pairs, two tasks",
        partial(_counterpart, "prefix-added-values", ("WTri", "TriC")),
    ),
    (
        "without-abs",
        "without-abs",
        "Without the absolute value, so that added values may be negative, the error is lower.",
        "three capacity networks, four tasks; the paper says: in several cases",
        _without_abs,
    ),
    (
        "regularisation",
        "regularisation",
        "Knowing that no instance adds more than 1 lowers the error of C-GRU on Unique Count.",
        "one network; the paper draws its curves and prints no numbers",
        _prior,
    ),
)
