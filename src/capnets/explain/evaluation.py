"""Judging explanations: against the truth where it is known, and by what removal does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets import metrics
from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.explain.value import CHUNK, Worth, same_sizes
from capnets.models.base import SetModel
from capnets.sets import Array, Sets

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Curve",
    "completeness_gap",
    "curve",
    "error",
    "judge",
    "judging_table",
    "rank_agreement",
]

STEPS = 21
"""At how many shares of a set (0, 5 %, …) curves over sets of different sizes are averaged."""


def error(explanation: Explanation) -> float:
    """Mean absolute distance of the values from the expected ones."""
    return metrics.added_value_error(_expected(explanation), explanation.values)


def completeness_gap(explanation: Explanation) -> float:
    """Mean absolute difference between the prediction (from the baseline) and the sum of values."""
    return float(np.abs(explanation.gaps).mean())


def rank_agreement(explanation: Explanation, other: Any = None) -> float:
    """How well the values rank the instances of a set: 1 as expected, 0 by chance, -1 reversed.

    Somers' D: of the pairs of instances that the expected values (or the other ones given) tell
    apart, the share ranked alike less the share ranked the other way; the mean over sets.
    """
    against = _expected(explanation) if other is None else np.asarray(other, dtype=np.float64)
    if against.shape != explanation.values.shape:
        raise InputError(
            f"ranks of {len(explanation.values)} values cannot be compared with {against.shape}"
        )
    found = []
    for k in range(len(explanation)):
        own = explanation.stretch(k)
        ours = np.sign(np.subtract.outer(explanation.values[own], explanation.values[own]))
        theirs = np.sign(np.subtract.outer(against[own], against[own]))
        if theirs.any():
            found.append((ours * theirs)[theirs != 0].mean())
    return float(np.mean(found)) if found else float("nan")


@dataclass(frozen=True, eq=False)
class Curve:
    """Predictions while instances are taken out, or put in, most valued first; means over sets.

    Parameters
    ----------
    shares
        The share of instances that was taken out or put in.
    predictions
        The mean prediction for what is left.
    aopc
        Area over the curve of deletion (how fast the prediction falls), or under the one of
        insertion (how fast it rises), in the unit of the label: higher is better in both.
    """

    shares: Array
    predictions: Array
    aopc: float


def curve(
    model: SetModel,
    sets: Sets,
    explanation: Explanation,
    *,
    insert: bool = False,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Curve:
    """The deletion curve of an explanation, or its insertion curve; removal is real.

    The area over the deletion curve is the mean over k = 0 … n of f(all) - f(all but the top k)
    (Samek et al. 2017), averaged over sets; that under the insertion curve is the mean of f(top k).
    """
    if not np.array_equal(explanation.offsets, sets.offsets):
        raise InputError("the explanation is not one of these sets: their sizes differ")
    worth = Worth(model, sets, output=output, chunk=chunk)
    grid = np.linspace(0, 1, STEPS)
    total, area, many = np.zeros(STEPS), 0.0, 0
    longest = int(sets.sizes.max(initial=1))
    for group in same_sizes(sets.sizes, most=4 * chunk // longest**2):
        size = int(sets.sizes[group[0]])
        values = explanation.values[sets.offsets[group][:, None] + np.arange(size)]
        rank = np.argsort(np.argsort(-values, axis=1, kind="stable"), axis=1)
        touched = rank[:, None, :] < np.arange(size + 1)[:, None]
        table = worth.of_subsets(group, touched if insert else ~touched)
        area += float((table if insert else table[:, :1] - table).mean(1).sum())
        total += np.sum(
            [np.interp(grid, np.linspace(0, 1, size + 1), row) for row in table], axis=0
        )
        many += len(group)
    if not many:
        raise InputError("zero instances: there is nothing to take out")
    return Curve(grid, total / many, area / many)


def judge(
    model: SetModel,
    sets: Sets,
    explanation: Explanation,
    *,
    output: int | None = None,
    chunk: int = CHUNK,
) -> dict[str, float]:
    """Everything that can be said about one explanation, by name.

    Error and rank agreement need expected values (`Explanation.expecting`); without them they are
    left out.
    """
    known = explanation.expected is not None
    where = {"output": output, "chunk": chunk}
    return {
        **({"error": error(explanation)} if known else {}),
        **({"rank agreement": rank_agreement(explanation)} if known else {}),
        "completeness gap": completeness_gap(explanation),
        "deletion": curve(model, sets, explanation, **where).aopc,  # type: ignore[arg-type]
        "insertion": curve(model, sets, explanation, insert=True, **where).aopc,  # type: ignore[arg-type]
        "passes per set": explanation.passes / max(1, len(explanation)),
        "seconds": explanation.seconds,
    }


def judging_table(
    sets: Sets, explained: Mapping[str, tuple[SetModel, Explanation]]
) -> pd.DataFrame:
    """One row per method: its quality and its cost.

    Parameters
    ----------
    sets
        What all of them explain.
    explained
        By the name of the method: the network, and the explanation of `sets`.
    """
    import pandas as pd

    rows = [
        {"method": name, **judge(model, sets, explanation)}
        for name, (model, explanation) in explained.items()
    ]
    return pd.DataFrame(rows).set_index("method")


def _expected(explanation: Explanation) -> Array:
    if explanation.expected is None:
        raise InputError(
            "no expected values are known for these sets, so the explanation cannot be judged "
            "against them; set tasks know them, other data can give them with .expecting(values)"
        )
    return explanation.expected
