"""What the paper claims, counted in its own numbers and in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from capnets.paper.compare import Compared, Comparison
from capnets.paper.names import CAPACITY, COUNTERPART

__all__ = ["Claim", "Count", "count_claims"]

IMAGE_TASKS = ("UC", "US", "WTri", "US+S", "TriC")


@dataclass(frozen=True)
class Count:
    """In how many of how many cases something holds; cases without numbers are not counted."""

    holds: int
    cases: int

    @classmethod
    def of(cls, cases: Iterable[bool | None]) -> Count:
        """Count cases, where None is one without numbers."""
        known = [case for case in cases if case is not None]
        return cls(sum(known), len(known))


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    says
        The claim, in our words.
    counted
        What a case is.
    scale
        How large our experiments on it were.
    ours, paper
        In how many cases our numbers and its own numbers agree.
    wanted
        How many cases there are.
    """

    name: str
    says: str
    counted: str
    scale: str
    ours: Count
    paper: Count
    wanted: int

    @property
    def verdict(self) -> str:
        """Whether it holds here, in words."""
        if not self.ours.cases:
            return "not run"
        share = self.ours.holds / self.ours.cases
        words = "holds" if share > 0.75 else "holds in part" if share >= 0.5 else "does not hold"
        if self.ours.cases < self.wanted:
            words += " so far"
        return words if self.scale == "full" else f"{words} at scale {self.scale}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {**asdict(self), "verdict": self.verdict}


Number = Callable[[Compared, str, str], float | None]


def count_claims(comparison: Comparison) -> tuple[Claim, ...]:
    """All claims, counted."""
    return tuple(
        Claim(
            name,
            says,
            counted,
            scale=comparison.tables[table].scale.name,
            ours=Count.of(cases(comparison, Compared.ours)),
            paper=Count.of(cases(comparison, Compared.paper)),
            wanted=len(cases(comparison, Compared.ours)),
        )
        for name, table, says, counted, cases in CLAIMS
    )


def _lower(a: float | None, b: float | None) -> bool | None:
    return None if a is None or b is None else a < b


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _counterpart(
    table: str, columns: tuple[str, ...], comparison: Comparison, number: Number
) -> list[bool | None]:
    """Capacity network below its counterpart."""
    compared = comparison.tables[table]
    return [
        _lower(number(compared, model, column), number(compared, other, column))
        for model, other in COUNTERPART.items()
        for column in columns
    ]


def _best(comparison: Comparison, number: Number) -> list[bool | None]:
    """The best capacity network at or below the best of all networks of the paper."""
    compared = comparison.tables["main-mean"]
    if comparison.protocol != "shared":  # what the paper prints is no measure for new images
        return [None] * len(IMAGE_TASKS)
    cases: list[bool | None] = []
    for task in IMAGE_TASKS:
        found = [number(compared, model, task) for model in CAPACITY]
        numbers = [value for value in found if value is not None]
        printed = [p for row in compared.rows if (p := compared.paper(row, task)) is not None]
        # At the two digits that are printed.
        cases.append(round(min(numbers), 2) <= min(printed) if numbers else None)
    return cases


def _growth(
    table: str, pairs: tuple[tuple[str, str], ...], comparison: Comparison, number: Number
) -> list[bool | None]:
    """The lead over the counterpart larger in the second column of a pair than in the first."""
    compared = comparison.tables[table]

    def lead(model: str, column: str) -> float | None:
        return _minus(number(compared, COUNTERPART[model], column), number(compared, model, column))

    return [_lower(lead(m, first), lead(m, second)) for m in CAPACITY for first, second in pairs]


def _without_abs(comparison: Comparison, number: Number) -> list[bool | None]:
    without, main = comparison.tables["without-abs"], comparison.tables["main-mean"]
    return [
        _lower(number(without, model, task), number(main, model, task))
        for model in CAPACITY
        for task in without.columns
    ]


def _prior(comparison: Comparison, number: Number) -> list[bool | None]:
    compared = comparison.tables["regularisation"]
    if number is Compared.paper:
        return [True]  # it draws the curves and prints no numbers
    return [
        _lower(number(compared, "with prior", "final"), number(compared, "without prior", "final"))
    ]


CLAIMS: tuple[tuple[str, str, str, str, Callable[[Comparison, Number], list[bool | None]]], ...] = (
    (
        "counterpart",
        "main-mean",
        "A capacity network predicts better than its counterpart, the recurrent network with the "
        "same cell.",
        "three pairs, five image tasks",
        partial(_counterpart, "main-mean", IMAGE_TASKS),
    ),
    (
        "best",
        "main-mean",
        "The best capacity network is at or below the lowest error that the paper prints for any "
        "network.",
        "five image tasks, at two digits",
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
        "less-data",
        "training-absolute",
        "A capacity network's lead over its counterpart grows when there are fewer training sets.",
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
        "A capacity network depends less on the order of the instances than its counterpart.",
        "three pairs on Unique Sum, the standard deviation of a network's error over five orders "
        "of its test sets (the mean over seeds)",
        partial(_counterpart, "order-statistics", ("stdev",)),
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
