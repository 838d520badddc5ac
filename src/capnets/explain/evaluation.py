"""Evaluate explanations: against known true values, and by removing instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets import metrics
from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.explain.subject import Source, resolve
from capnets.explain.value import groups_of_equal_size
from capnets.sets import Array, Sets

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "RemovalCurve",
    "compare_explanations",
    "completeness_gap",
    "evaluate_explanation",
    "rank_agreement",
    "removal_curve",
    "value_error",
]

#: Number of shares of a set (0, 5 %, …) at which curves over sets of different sizes are averaged.
STEPS = 21


def value_error(explanation: Explanation) -> float:
    """Return the mean absolute difference between values and expected values."""
    return metrics.added_value_error(_expected(explanation), explanation.values)


def completeness_gap(explanation: Explanation) -> float:
    """Return the mean absolute difference between prediction - baseline and the sum of values."""
    return float(np.abs(explanation.gaps).mean())


def rank_agreement(explanation: Explanation, other: Any = None) -> float:
    """Return how well the values rank the instances of a set: 1 perfect, 0 chance, -1 reversed.

    Somers' D, averaged over sets: among the pairs of instances with different expected values (or
    values of `other`), the share ranked alike minus the share ranked the other way.
    """
    against = _expected(explanation) if other is None else np.asarray(other, dtype=np.float64)
    if against.shape != explanation.values.shape:
        raise InputError(
            f"cannot compare ranks of {len(explanation.values)} values with shape {against.shape}"
        )
    found = []
    for k in range(len(explanation)):
        own = explanation.span(k)
        ours = np.sign(np.subtract.outer(explanation.values[own], explanation.values[own]))
        theirs = np.sign(np.subtract.outer(against[own], against[own]))
        if theirs.any():
            found.append((ours * theirs)[theirs != 0].mean())
    return float(np.mean(found)) if found else float("nan")


@dataclass(frozen=True, eq=False)
class RemovalCurve:
    """Mean predictions while instances are removed, or inserted, highest values first.

    Parameters
    ----------
    shares
        The share of instances removed or inserted.
    predictions
        The mean prediction for the instances that are present.
    aopc
        Area over the deletion curve (how fast the prediction falls), or under the insertion curve
        (how fast it rises), in the unit of the label. Higher is better in both cases.
    """

    shares: Array
    predictions: Array
    aopc: float


def removal_curve(
    source: Source,
    X: Any,
    explanation: Explanation,
    *,
    insert: bool = False,
    output: int | str | None = None,
) -> RemovalCurve:
    """Compute the deletion curve of an explanation, or its insertion curve.

    The area over the deletion curve is the mean over k = 0 … n of f(all) - f(all but the top k)
    (Samek et al. 2017), averaged over sets; that under the insertion curve is the mean of f(top k).
    """
    value = resolve(source, X, output).value()
    sets = value.sets
    if not np.array_equal(explanation.offsets, sets.offsets):
        raise InputError("the explanation is not one of these sets: their sizes differ")
    grid = np.linspace(0, 1, STEPS)
    total, area, many = np.zeros(STEPS), 0.0, 0
    longest = int(sets.sizes.max(initial=1))
    for group in groups_of_equal_size(sets.sizes, most=4 * value.chunk // longest**2):
        size = int(sets.sizes[group[0]])
        values = explanation.values[sets.offsets[group][:, None] + np.arange(size)]
        rank = np.argsort(np.argsort(-values, axis=1, kind="stable"), axis=1)
        touched = rank[:, None, :] < np.arange(size + 1)[:, None]
        table = value.predict_subsets(group, touched if insert else ~touched)
        area += float((table if insert else table[:, :1] - table).mean(1).sum())
        total += np.sum(
            [np.interp(grid, np.linspace(0, 1, size + 1), row) for row in table], axis=0
        )
        many += len(group)
    if not many:
        raise InputError("zero instances: nothing can be removed")
    return RemovalCurve(grid, total / many, area / many)


def evaluate_explanation(
    source: Source,
    X: Any,
    explanation: Explanation,
    *,
    output: int | str | None = None,
) -> dict[str, float]:
    """Return all quality measures of an explanation by name.

    Error and rank agreement need expected values (`Explanation.with_expected`).
    """
    known = explanation.expected is not None

    def area(*, insert: bool) -> float:
        return removal_curve(source, X, explanation, insert=insert, output=output).aopc

    return {
        **({"error": value_error(explanation)} if known else {}),
        **({"rank agreement": rank_agreement(explanation)} if known else {}),
        "completeness gap": completeness_gap(explanation),
        "deletion": area(insert=False),
        "insertion": area(insert=True),
        "passes per set": explanation.passes / max(1, len(explanation)),
        "seconds": explanation.seconds,
    }


def compare_explanations(
    sets: Sets, explained: Mapping[str, tuple[Source, Explanation]]
) -> pd.DataFrame:
    """Return a table with one row per method: quality and cost.

    Parameters
    ----------
    sets
        The sets that all methods explain.
    explained
        By the name of the method: the network, and its explanation of `sets`.
    """
    import pandas as pd

    rows = [
        {"method": name, **evaluate_explanation(model, sets, explanation)}
        for name, (model, explanation) in explained.items()
    ]
    return pd.DataFrame(rows).set_index("method")


def _expected(explanation: Explanation) -> Array:
    if explanation.expected is None:
        raise InputError(
            "no expected values are known for these sets; set tasks know them, for other data pass "
            "them with explanation.with_expected(values)"
        )
    return explanation.expected
