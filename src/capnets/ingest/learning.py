"""Learn a schema from a table: which columns are features, and how they become numbers."""

from __future__ import annotations

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Columns, Feature, Schema, matches, missing_column
from capnets.ingest.encode import as_meant, number_column, text_column
from capnets.ingest.kinds import (
    check_plain,
    is_category,
    is_date,
    is_number,
    is_text,
    is_wide,
    not_a_number,
)
from capnets.ingest.source import Source
from capnets.sets.precision import Range

__all__ = ["learn_schema"]

#: A category with more values than this is probably an identifier, or should be hashed.
MOST_CATEGORIES = 256
#: Text with at most this many values, each in two rows on average, is a category by itself.
FEW_CATEGORIES = 20


def learn_schema(source: Source, columns: Columns) -> Schema:
    """Learn which columns are features, the values of categories, and the offsets of numbers.

    Reads only columns of categories and of 64-bit numbers. Imputed values are learned later, when
    all numbers are read.
    """
    names = source.names
    _check_named(source, columns)
    features = columns.choose(names, where=source.name, index=source.index)
    covariates = columns.choose_covariates(names, source.name)
    chosen = features + covariates
    types = dict(zip(names, source.schema.types, strict=True))
    check_plain(source, chosen)
    hashed = [n for n in chosen if columns.is_hashed(n)]
    others = [n for n in chosen if n not in hashed]
    categories = [n for n in others if columns.is_category(n) or is_category(types[n])]
    others = [n for n in others if n not in categories]
    for name in others:
        if is_text(types[name]):
            if not _few(source, name):
                raise not_a_number(source, name)
            categories.append(name)
        elif not (is_number(types[name]) or is_date(types[name])):
            raise not_a_number(source, name)
        elif is_date(types[name]) and name in covariates:
            raise InputError(
                f"{source.name}: column {name!r} holds dates; turn a covariate into a number (days)"
            )
    numbers = [n for n in others if is_number(types[n]) and is_wide(types[n])]
    seen, ranges = _look_through(source.with_text(categories), categories, numbers)

    def feature(name: str) -> Feature:
        if name in hashed:
            return Feature(name, buckets=columns.buckets)
        if name in seen:
            return Feature(name, categories=seen[name])
        if is_date(types[name]):
            return Feature(name, date=True)
        loses = name in ranges and ranges[name].loses()
        return Feature(name, offset=ranges[name].middle() if loses else 0.0)

    encoded = tuple(map(feature, features)), tuple(map(feature, covariates))
    return Schema(columns, encoded[0], covariates=encoded[1])


def _check_named(source: Source, columns: Columns) -> None:
    """Raise if a column with a meaning does not exist."""
    if columns.coordinates:
        raise InputError(
            f"{source.name}: coordinates=True (--coordinates) is for feature folders; "
            "columns of a table are features by name"
        )
    names = source.names
    if columns.text is not None and not any(n.startswith(f"{columns.text}[") for n in names):
        raise InputError(
            f"{source.name}: the text of {columns.text!r} has to become numbers first; "
            "SetRegressor, SetClassifier and the command line do that"
        )
    for name in (columns.set, *columns.target, columns.order, columns.group, columns.weight):
        if name is not None and name not in names:
            raise missing_column(name, names, where=source.name)
    for pattern in (*columns.categories, *columns.hashed):
        if not any(matches(n, pattern) for n in names):
            raise missing_column(pattern, names, where=source.name)


def _few(source: Source, name: str) -> bool:
    """Return whether a column of text has few values that repeat and are no numbers."""
    found: set[str] = set()
    rows = 0
    for batch in source.batches([name]):
        values, codes = text_column(batch.column(0))
        found |= {values[k] for k in np.unique(codes) if k >= 0}
        rows += int((codes >= 0).sum())
        if len(found) > FEW_CATEGORIES:
            return False
    numbers = any(not isinstance(as_meant(value), str) for value in found)
    return 2 * len(found) <= rows and not numbers


def _look_through(
    source: Source, categories: list[str], numbers: list[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Range]]:
    """Return the values of categories and the ranges of numbers."""
    seen: dict[str, set[str]] = {n: set() for n in categories}
    ranges = {n: Range() for n in numbers}
    for batch in source.batches([*categories, *numbers]) if categories or numbers else ():
        for name, reach in ranges.items():
            reach.add(number_column(batch.column(name)))
        for name, found in seen.items():
            values, codes = text_column(batch.column(name))
            found |= {values[k] for k in np.unique(codes) if k >= 0}
            if len(found) > MOST_CATEGORIES:
                raise InputError(
                    f"{source.name}, column {name!r}: more than {MOST_CATEGORIES} categories; "
                    f"hash them (--hashed {name}), or leave the column out if it is a name"
                )
    return {n: tuple(sorted(v)) for n, v in seen.items()}, ranges
