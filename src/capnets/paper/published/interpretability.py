"""Published added values, their errors, and the sensitivity to the order of instances.

The regularisation figure (figure 4) has no numbers here: it draws two learning curves from a data
file that is not part of the paper's source. Only its axes are known: test MSE from 0 to 0.6, epochs
50 to 500.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from capnets.paper.published.printed import rows

__all__ = [
    "ADDED_VALUE_ERROR",
    "EXAMPLES",
    "ORDER_POINTS",
    "ORDER_STATISTICS",
    "PREFIX_ADDED_VALUE_ERROR",
    "REGULARISATION_EPOCHS",
    "Example",
]

# Table 5: mean absolute distance of added values from the exact ones.
ADDED_VALUE_ERROR = rows(
    ("US", "WTri", "US+S", "TriC"),
    """
    c-rnn  0.29 0.14 0.40 1.32
    c-lstm 1.50 0.09 2.00 0.57
    c-gru  2.15 0.08 0.47 0.62
    """,
)

# Table 18: the same measure; a network that is not a capacity network is applied to prefixes.
PREFIX_ADDED_VALUE_ERROR = rows(
    ("WTri", "TriC"),
    """
    rnn    12.45  3.84
    c-rnn   0.12  1.10
    lstm   17.56  3.47
    c-lstm  0.11  0.81
    gru    13.25 11.75
    c-gru   0.09  1.15
    """,
)

# Figure 3: test MSE on US under five orders, smallest first as in the source.
ORDER_POINTS = rows(
    (1, 2, 3, 4, 5),
    """
    rnn    0.582 0.780 0.875 0.890 0.951
    c-rnn  0.294 0.345 0.392 0.399 0.469
    lstm   0.320 0.320 0.338 0.344 0.396
    c-lstm 0.168 0.226 0.230 0.244 0.253
    gru    0.272 0.310 0.351 0.357 0.403
    c-gru  0.215 0.275 0.278 0.297 0.319
    """,
)

# Table 15: statistics of those five points.
ORDER_STATISTICS = rows(
    ("median", "mean", "stdev"),
    """
    rnn    0.88 0.82 0.13
    c-rnn  0.39 0.38 0.06
    lstm   0.34 0.34 0.03
    c-lstm 0.23 0.22 0.03
    gru    0.35 0.34 0.05
    c-gru  0.28 0.28 0.04
    """,
)

REGULARISATION_EPOCHS = (50, 500)


@dataclass(frozen=True)
class Example:
    """One set with its exact added values and those of the three capacity networks.

    The source names few of the pictures, so the classes are such that they give the exact values.

    Attributes
    ----------
    classes
        Classes of the instances in order.
    named
        Classes that the file names of the pictures state; None for the others.
    undetermined
        Positions at which another class is also possible.
    expected
        Exact added values; their sum is `total`.
    values
        Added values by network; their printed sums are `totals`.
    distances
        Printed distances from the exact values, their sum last; empty where none are printed.
    """

    task: str
    classes: tuple[int, ...]
    named: tuple[int | None, ...]
    undetermined: tuple[int, ...]
    expected: tuple[float, ...]
    total: float
    values: Mapping[str, tuple[float, ...]]
    totals: Mapping[str, float]
    distances: Mapping[str, tuple[float, ...]]


def _example(
    task: str,
    classes: tuple[int, ...],
    text: str,
    *,
    named: tuple[int | None, ...],
    undetermined: tuple[int, ...] = (),
) -> Example:
    table = {name: tuple(row.values()) for name, row in rows(range(len(classes) + 1), text).items()}
    expected = table.pop("expected")
    distances = {n.removeprefix("Δ"): r for n, r in table.items() if n.startswith("Δ")}
    values = {n: r for n, r in table.items() if not n.startswith("Δ")}
    return Example(
        task=task,
        classes=classes,
        named=named,
        undetermined=undetermined,
        expected=expected[:-1],
        total=expected[-1],
        values=MappingProxyType({name: row[:-1] for name, row in values.items()}),
        totals=MappingProxyType({name: row[-1] for name, row in values.items()}),
        distances=MappingProxyType(distances),
    )


# Tables 3 (US), 16 (WTri, US+S) and 4 (Mult); the last column is the sum.
EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        "US": _example(
            "US",
            (7, 8, 6, 7, 8),
            """
            expected 7.00 8.00 6.00 0.00 0.00 21.00
            c-rnn    6.97 7.99 6.01 0.01 0.00 20.98
            Δc-rnn   0.03 0.01 0.01 0.01 0.00  0.06
            c-lstm   6.83 7.88 6.03 0.12 0.17 21.03
            Δc-lstm  0.17 0.12 0.03 0.12 0.17  0.61
            c-gru    6.58 7.47 6.11 0.44 0.40 21.00
            Δc-gru   0.42 0.53 0.11 0.44 0.40  1.90
            """,
            named=(None, 8, None, None, 8),
            undetermined=(3,),
        ),
        "WTri": _example(
            "WTri",
            (2, 4, 3, 6, 3),
            """
            expected 2.00 4.00 3.00 6.00 6.00 21.00
            c-rnn    1.99 4.00 2.98 5.95 5.65 20.57
            Δc-rnn   0.01 0.00 0.02 0.05 0.35  0.43
            c-lstm   2.02 3.97 3.04 6.00 6.21 21.24
            Δc-lstm  0.02 0.03 0.04 0.00 0.21  0.30
            c-gru    2.03 3.97 2.92 5.95 6.38 21.25
            Δc-gru   0.03 0.03 0.08 0.05 0.38  0.57
            """,
            named=(None, None, None, 6, None),
            undetermined=(1, 4),
        ),
        "US+S": _example(
            "US+S",
            (7, 9, 2, 7, 5),
            """
            expected 7.00 9.00 12.00 0.00 5.00 33.00
            c-rnn    6.86 8.97 11.92 0.11 5.03 32.89
            Δc-rnn   0.14 0.03  0.08 0.11 0.03  0.39
            c-lstm   6.09 8.50 12.27 0.57 5.70 33.13
            Δc-lstm  0.91 0.50  0.27 0.57 0.70  2.95
            c-gru    6.81 8.59 11.91 0.24 5.01 32.56
            Δc-gru   0.19 0.41  0.09 0.24 0.01  0.94
            """,
            named=(7, None, 2, None, None),
            undetermined=(3,),
        ),
        "Mult": _example(
            "Mult",
            (6, 5, 4),
            """
            expected 6.00 24.00 90.00 120.00
            c-rnn    5.69 24.49 89.27 119.45
            c-lstm   5.34 25.03 90.34 120.71
            c-gru    2.85 26.21 88.37 117.68
            """,
            named=(None, None, None),
        ),
    }
)
