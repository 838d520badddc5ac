"""Dates as features, by one rule: weekday, age within the set, and gap to the instance before.

A date column `when` becomes nine numbers: `when=Mon` … `when=Sun` (one of them is 1), `when age`,
the days before the latest date of the set, and `when gap`, the days since the instance before it
in time (0 for the first). Absolute dates are no features: later tables have other ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.sets import Array

__all__ = ["PARTS", "ages_and_gaps", "days_of", "weekdays"]

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: Endings of the names of the numbers that a date becomes.
PARTS = (*(f"={day}" for day in WEEKDAYS), " age", " gap")
#: Microseconds of a day.
DAY = 86_400_000_000


def days_of(column: Any) -> Array:
    """Return days since 1970 as float64, NaN for missing dates."""
    import pyarrow as pa

    moments = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    days: Array = moments.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / DAY
    return days


def weekdays(days: Array) -> Array:
    """Return rows x 7 with a 1 at the weekday; all zeros for missing dates."""
    known = ~np.isnan(days)
    number = (np.floor(np.where(known, days, 0)).astype(np.int64) + 3) % 7  # 1970 began on Thursday
    shown: Array = (number[:, None] == np.arange(7)) & known[:, None]
    return shown.astype(np.float32)


def ages_and_gaps(days: Array, sets: Array) -> Array:
    """Return rows x 2: days before the latest date of the set, and since the date before.

    Parameters
    ----------
    days
        Days of every row; NaN for missing dates, whose age and gap are 0.
    sets
        Number of the set of every row.

    Examples
    --------
    >>> ages_and_gaps(np.array([3.0, 10.0, 4.0]), np.array([0, 0, 0])).tolist()
    [[7.0, 0.0], [0.0, 6.0], [6.0, 1.0]]
    """
    latest = np.full(int(sets.max(initial=-1)) + 1, -np.inf)
    known = ~np.isnan(days)
    np.maximum.at(latest, sets[known], days[known])
    found = np.zeros((len(days), 2))
    found[known, 0] = latest[sets[known]] - days[known]
    order = np.lexsort((days, sets))
    order = order[known[order]]
    gaps = np.diff(days[order], prepend=0)
    gaps[np.flatnonzero(np.diff(sets[order], prepend=-1))] = 0
    found[order, 1] = gaps
    return found
