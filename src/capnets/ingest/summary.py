"""Summarize sets before training and point out data that was probably read wrongly.

Five mistakes are common enough to look for: a CSV file without a header, whose first row became the
column names; sets of one instance each; a column that counts the rows; a constant
column; and a value so large that all others look equal to a network.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capnets.errors import DataWarning
from capnets.ingest.columns import Schema
from capnets.records import Record
from capnets.sets import Array, Sets
from capnets.sets.mapped import blocks

__all__ = ["Summary", "looks_like_data", "summarize", "warn_of_outliers"]

#: Distance of an outlier from the median, in multiples of the range of most values.
OUTLIER = 1e4
#: Fewer rows than this may count upwards by chance.
MIN_ROWS = 10
#: Rows whose quantiles are computed.
CHUNK = 65536


@dataclass(frozen=True)
class Summary(Record):
    """The size of a data set, the meaning of its columns, and warnings.

    Parameters
    ----------
    sets, instances
        Numbers of sets and instances.
    sizes
        Smallest, median and largest number of instances in a set.
    numbers, categories, ignored
        Columns by their use; `ignored` is neither a feature nor anything else.
    target
        Target columns.
    labels
        Range of the labels, or sets per class.
    missing
        Missing values per column that were filled.
    warnings
        Sentences about data that was probably read wrongly.
    dates
        Columns of dates.
    covariates
        Columns that describe whole sets.
    order
        Column that orders the instances of a set, if there is one.
    """

    sets: int
    instances: int
    sizes: tuple[float, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    labels: str = ""
    missing: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    order: str = ""

    def __str__(self) -> str:
        low, median, high = self.sizes
        count = f"{self.sets:,} {'set' if self.sets == 1 else 'sets'}"
        each = f"{low:g}" if low == high else f"{low:g} to {high:g} (median {median:g})"
        lines = [
            f"{count}, {self.instances:,} instances, {each} per set",
            f"features: {_listed(self.numbers, 'number')}",
        ]
        if self.categories:
            lines[-1] += f"; {_listed(self.categories, 'category', 'categories')}"
        if self.dates:
            lines[-1] += f"; {_listed(self.dates, 'date')} (weekday, age and gap in days)"
        if self.covariates:
            lines.append(f"covariates: {_listed(self.covariates, 'column')}")
        if self.order:
            lines.append(f"order of the instances: {self.order}")
        if self.ignored:
            lines.append(f"ignored: {_listed(self.ignored, 'column')}")
        if self.labels:
            lines.append(f"target: {', '.join(self.target) or 'y'}: {self.labels}")
        gaps = (f"{name} {count:,}" for name, count in self.missing.items())
        lines.append(f"missing values: {', '.join(gaps) or 'none'}")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def summarize(
    sets: Sets,
    schema: Schema | None = None,
    *,
    classes: tuple[Any, ...] | None = None,
    ignored: tuple[str, ...] = (),
    missing: dict[str, int] | None = None,
    header: tuple[str, ...] = (),
) -> Summary:
    """Summarize sets that were read for training.

    Parameters
    ----------
    sets
        The sets, with labels if there are any.
    schema
        How their table was read, if they come from one.
    classes
        Names of the classes that labels number; by default those of the schema.
    ignored
        Columns of the table without any meaning.
    missing
        Missing values per column.
    header
        Column names that a text file has in its first row.

    Examples
    --------
    >>> sets = Sets.from_arrays([np.eye(3), np.eye(3)[:1]], y=[1.0, 4.0])
    >>> print(summarize(sets))
    2 sets, 4 instances, 1 to 3 (median 2) per set
    features: 3 numbers
    target: y: from 1 to 4, mean 2.5
    missing values: none
    """
    names = list(sets.feature_names or range(int(np.prod(sets.feature_shape))))
    numbers = tuple(map(str, names)) if sets.feature_names else ("",) * len(names)
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    if schema is not None and schema.features:
        numbers = tuple(f.name for f in schema.features if f.kind == "number")
        categories = tuple(f.name for f in schema.features if f.kind in ("category", "hashed"))
        dates = tuple(f.name for f in schema.features if f.date)
    if schema is not None:
        classes = classes or schema.classes
    sizes = sets.sizes
    columns = [text for _, text in _column_warnings(sets, names, schema)]
    found = [*_size_warnings(sets), *columns]
    if looks_like_data(header):
        found.insert(
            0,
            f"the first row ({', '.join(header[:4])}{', …' * (len(header) > 4)}) looks like data; "
            "it became the column names. Add a row of names to the file.",
        )
    return Summary(
        len(sets),
        len(sets.index),
        (float(sizes.min()), float(np.median(sizes)), float(sizes.max())),
        numbers,
        categories,
        ignored,
        () if schema is None else schema.columns.target,
        "" if sets.y is None else _labels(np.asarray(sets.y), classes),
        {name: count for name, count in (missing or {}).items() if count},
        tuple(found),
        dates,
        _covariates(sets, schema),
        "" if schema is None else schema.columns.order or "",
    )


def _covariates(sets: Sets, schema: Schema | None) -> tuple[str, ...]:
    if schema is not None:
        return tuple(f.name for f in schema.covariates)
    return tuple(sets.covariate_names or ("",) * sets.n_covariates)


def warn_of_outliers(sets: Sets, schema: Schema | None = None) -> None:
    """Warn of features with a value so large that all others look equal to a network."""
    names = list(sets.feature_names or range(int(np.prod(sets.feature_shape))))
    for outlier, text in _column_warnings(sets, names, schema):
        if outlier:
            warnings.warn(text, DataWarning, stacklevel=3)


def looks_like_data(header: tuple[str, ...]) -> bool:
    """Return whether column names are mostly numbers, other than a count of the columns.

    >>> looks_like_data(("7", "0.25", "red")), looks_like_data(("set", "0", "1"))
    (True, False)
    """
    written = [name for name in header if _is_number(name)]
    counts = bool((np.diff([float(name) for name in written]) == 1).all())
    return len(written) > len(header) / 2 and not (counts and "." not in "".join(written))


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _labels(y: Array, classes: tuple[Any, ...] | None) -> str:
    if classes is not None and y.ndim == 1:
        counts = np.bincount(y.astype(np.int64), minlength=len(classes))
        shown = [f"{name} ({count:,})" for name, count in zip(classes, counts, strict=True)][:10]
        return f"{len(classes)} classes, {', '.join(shown)}{', …' * (len(classes) > 10)}"
    if y.ndim > 1:
        return f"{y.shape[1]} labels per set, from {y.min():g} to {y.max():g}"
    return f"from {y.min():g} to {y.max():g}, mean {y.mean(dtype=np.float64):.4g}"


def _listed(names: tuple[str, ...], one: str, many: str = "") -> str:
    count = f"{len(names):,} {one if len(names) == 1 else many or one + 's'}"
    if not any(names):
        return count
    return f"{count} ({', '.join(names[:8])}{', …' * (len(names) > 8)})"


def _size_warnings(sets: Sets) -> Iterator[str]:
    """Yield a sentence about labelled sets that hold one instance each."""
    if sets.y is not None and len(sets) >= MIN_ROWS and sets.sizes.max() == 1:
        yield "every set has one instance; is the right column named as the set column?"


def _column_warnings(
    sets: Sets, names: list[Any], schema: Schema | None
) -> Iterator[tuple[bool, str]]:
    """Yield sentences about columns that count rows, are constant, or hold an outlier (True)."""
    table = sets.instances.reshape(len(sets.instances), -1)
    if not len(table) or table.shape[1] != len(names):
        return
    plain = set(range(len(names)) if schema is None else schema.numbers.values())
    if not plain:  # features of a folder: no column has a meaning of its own
        return
    called = [f"column {n!r}" if isinstance(n, str) else f"feature {n}" for n in names]
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    counts = np.full(len(names), len(table) >= MIN_ROWS)
    before = np.empty((0, len(names)))
    for _, block in blocks(table):
        part = np.concatenate([before, block.astype(np.float64)])
        before = part[-1:]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        if counts.any():
            steps = np.diff(part[:, counts], axis=0)
            counts[counts] = ((steps == 1).all(axis=0)) | (steps == -1).all(axis=0)
    step = max(1, len(table) // min(CHUNK, max(1000, 2**24 // len(names))))
    sample = np.asarray(table[::step], dtype=np.float64)
    near, median, far = np.quantile(sample, [0.1, 0.5, 0.9], axis=0)
    extreme = np.maximum(high - median, median - low)
    for k in sorted(plain):
        if counts[k]:
            text = f"{called[k]} counts the rows; it says nothing about an instance. Leave it out."
            yield False, text
        elif low[k] == high[k]:
            yield False, f"{called[k]} is constant ({low[k]:g}); leave it out."
        elif far[k] > near[k] and extreme[k] > OUTLIER * (far[k] - near[k]):
            value = high[k] if high[k] - median[k] == extreme[k] else low[k]
            yield (
                True,
                f"{called[k]} holds the value {value:g}, while most lie between {near[k]:g} and "
                f"{far[k]:g}. A network cannot distinguish these; correct or drop the value.",
            )
