"""Lay out one explained set as rows, shared by page, terminal and figure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capnets.explain.explanation import Explanation
from capnets.sets import Array

__all__ = ["LARGE", "Row", "SetRows", "digits", "number", "rows_of"]

#: Of sets with more instances only those with the highest and the lowest values are shown.
LARGE = 200


@dataclass(frozen=True)
class Row:
    """An instance: where its bar starts and ends, and its uncertainty.

    Parameters
    ----------
    position
        In the set, from 0.
    value, start, end
        The value, and the running sum before and after it.
    error, spread, expected
        Standard error, standard deviation over orders, expected value; None when unknown.
    """

    position: int
    value: float
    start: float
    end: float
    error: float | None
    spread: float | None
    expected: float | None

    @property
    def whisker(self) -> float | None:
        """Return the spread over orders if known, else the standard error."""
        return self.error if self.spread is None else self.spread


@dataclass(frozen=True)
class SetRows:
    """A set: its rows in the order of reading, and the numbers of its heading.

    `probability`, `predicted_class` and `true_class` are known for classifiers only.
    """

    name: str
    rows: tuple[Row, ...]
    prediction: float
    baseline: float
    spread: float | None
    label: float | None
    gap: float
    output: str = ""
    unit: str = ""
    probability: float | None = None
    predicted_class: str | None = None
    true_class: str | None = None
    covariates: str | None = None

    @property
    def baseline_words(self) -> str:
        """Return the baseline in words; with covariates, of which set it is."""
        if self.covariates is None:
            return f"a baseline of {number(self.baseline)}"
        return f"the baseline for this set ({self.covariates}), {number(self.baseline)}"

    @property
    def caption(self) -> str:
        """Return prediction, probability and truth in one line."""
        if self.probability is None:
            unit = f" ({self.unit})" if self.unit else ""
            parts = [f"predicted {number(self.prediction, self.decimals)}{unit}"]
        else:
            parts = [f"P({self.output}) = {self.probability:.3f}"]
            parts += [f"predicted {self.predicted_class}"] if self.predicted_class else []
        if self.true_class is not None:
            parts.append(f"label {self.true_class}")
        elif self.label is not None:
            parts.append(f"label {number(self.label)}")
        return ", ".join(parts)

    @property
    def decimals(self) -> int:
        """Return the number of decimals of the values of this set."""
        return digits(max((abs(row.value) for row in self.rows), default=0.0))

    @property
    def levels(self) -> tuple[float, float]:
        """Return the lowest and highest running sum, whiskers included."""
        points = [self.baseline, self.prediction]
        for row in self.rows:
            points += [row.start, row.end]
            points += [row.end + s * (row.whisker or 0.0) for s in (-1, 1)]
            points += [] if row.expected is None else [row.start + row.expected]
        return min(points), max(points)

    @property
    def heights(self) -> tuple[float, float]:
        """Return the lowest and highest value, whiskers and 0 included."""
        points = [0.0]
        for row in self.rows:
            points += [row.value + s * (row.whisker or 0.0) for s in (-1, 0, 1)]
            points += [] if row.expected is None else [row.expected]
        return min(points), max(points)

    def extremes(self, most: int) -> SetRows:
        """Return a large set with so many rows, those of its highest and lowest values."""
        if len(self.rows) <= LARGE:
            return self
        order = np.argsort([row.value for row in self.rows], kind="stable")
        kept = np.sort(np.concatenate([order[: most // 2], order[len(order) - most // 2 :]]))
        return replace(self, rows=tuple(self.rows[i] for i in kept))


def rows_of(explanation: Explanation, k: int) -> SetRows:
    """Return set k of an explanation as rows, in the order of reading if there is one order."""
    own = explanation.span(k)
    positions = np.arange(own.stop - own.start)
    if explanation.orders.kind == "listed":
        positions = np.asarray(explanation.orders.listed)[own]
    values = explanation.values[own][positions]
    baseline = float(explanation.baselines[k])
    ends = baseline + np.cumsum(values)
    starts = ends - values

    def known(array: Array | None, i: int) -> float | None:
        return None if array is None else float(array[own.start + i])

    rows = tuple(
        Row(
            int(i), float(v), float(a), float(b),
            known(explanation.errors, i), known(explanation.spreads, i),
            known(explanation.expected, i),
        )
        for i, v, a, b in zip(positions, values, starts, ends, strict=True)
    )  # fmt: skip

    def of_set(array: Array | None) -> float | None:
        return None if array is None else float(array[k])

    def name_of_set(names: tuple[str, ...] | None) -> str | None:
        return None if names is None else names[k]

    return SetRows(
        name=explanation.name(k),
        rows=rows,
        prediction=float(explanation.predictions[k]),
        baseline=baseline,
        spread=of_set(explanation.prediction_spreads),
        label=of_set(explanation.labels),
        gap=float(explanation.gaps[k]),
        output=explanation.output,
        unit=explanation.unit,
        probability=of_set(explanation.probabilities),
        predicted_class=name_of_set(explanation.predicted_classes),
        true_class=name_of_set(explanation.true_classes),
        covariates=name_of_set(explanation.covariates),
    )


def number(value: float, decimals: int | None = None, *, signed: bool = False) -> str:
    """Format a number with a minus sign; by default with three significant digits.

    >>> number(-0.01234), number(12.3456), number(1234.5), number(0.5, 2, signed=True)
    ('−0.0123', '12.3', '1234', '+0.50')
    """
    text = f"{value:.{digits(value) if decimals is None else decimals}f}"
    if decimals is None and "." in text:
        text = text.rstrip("0").rstrip(".")
    if not float(text):
        return text.removeprefix("-")
    return ("+" if signed and value > 0 else "") + text.replace("-", "−")


def digits(largest: float) -> int:
    """Return the decimals that give three significant digits, at most four."""
    if not largest or not np.isfinite(largest):
        return 0
    return int(min(4, max(0, 2 - np.floor(np.log10(abs(largest))))))
