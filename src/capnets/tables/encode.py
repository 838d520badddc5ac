"""Batches of rows to blocks of 32-bit numbers, by a schema."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array
from capnets.tables.columns import Columns, Feature, Schema, matches, missing_column
from capnets.tables.sources import Source

__all__ = ["Encoder", "as_text", "learn_schema", "number_column", "text_column"]

#: A column with more values than this is a name, not a category.
MOST_CATEGORIES = 256


def learn_schema(source: Source, columns: Columns) -> Schema:
    """Which columns are features, and the categories of those that are categories.

    Only the columns of categories are read. What fills a gap is learned later, with the numbers.
    """
    names = source.names
    if columns.text is not None and f"{columns.text}[0]" not in names:
        raise InputError(
            f"{source.name}: the text of {columns.text!r} has to become numbers first; "
            "SetRegressor, SetClassifier and the command line do that"
        )
    for name in (columns.set, *columns.target, columns.order, columns.group, columns.weight):
        if name is not None and name not in names:
            raise missing_column(name, names, where=source.name)
    for pattern in columns.categories:
        if not any(matches(n, pattern) for n in names):
            raise missing_column(pattern, names, where=source.name)
    chosen = columns.choose(names, where=source.name)
    types = dict(zip(names, source.schema.types, strict=True))
    categories = [n for n in chosen if columns.is_category(n) or _is_category(types[n])]
    for name in chosen:
        if name not in categories and not _is_number(types[name]):
            raise _not_a_number(source, name)
    seen = _values(source, categories)
    features = tuple(Feature(n, categories=seen.get(n)) for n in chosen)
    return Schema(columns, features)


class Encoder:
    """Reads the feature columns of one source.

    Parameters
    ----------
    schema
        How.
    source
        What; a feature that it lacks is an error, a column that no feature needs is not.
    """

    def __init__(self, schema: Schema, source: Source) -> None:
        self.schema, self.source = schema, source
        names = source.names
        types = dict(zip(names, source.schema.types, strict=True))
        for feature in schema.features:
            if feature.name not in names:
                raise missing_column(feature.name, names, where=source.name)
            if feature.categories is None and not _is_number(types[feature.name]):
                raise _not_a_number(source, feature.name)
        self.width = len(schema.feature_names)
        self.refuse = schema.columns.missing == "refuse"

    def block(self, batch: Any, row: int) -> Array:
        """Rows x features; NaN where a number is missing and may be. `row` is that of the first."""
        out = np.zeros((len(batch), self.width), dtype=np.float32)
        place = 0
        with np.errstate(over="ignore"):  # too large for 32 bits becomes infinite, and is refused
            for feature in self.schema.features:
                column = batch.column(feature.name)
                if feature.categories is None:
                    out[:, place] = number_column(column)
                else:
                    self._categories(feature, column, out[:, place:], row)
                place += len(feature.names)
        self._check(out, batch, row)
        return out

    def _categories(self, feature: Feature, column: Any, out: Array, row: int) -> None:
        assert feature.categories is not None
        places = {c: k for k, c in enumerate(feature.categories)}
        values, codes = text_column(column)
        known = np.array([places.get(v, -1) for v in values] + [-1])
        where = known[codes]
        unseen = np.flatnonzero(where < 0)
        if len(unseen) and self.refuse:
            first = int(unseen[0])
            what = (
                "no value" if codes[first] < 0 else f"the unseen category {values[codes[first]]!r}"
            )
            raise InputError(
                f"{self.source.name}, row {row + first} (from 0), column {feature.name!r}: {what}; "
                f"known are {', '.join(feature.categories[:20])}. "
                "A rule for missing values ('mean' or 'zero') treats it as none of them."
            )
        rows = np.flatnonzero(where >= 0)
        out[rows, where[rows]] = 1.0

    def _check(self, block: Array, batch: Any, row: int) -> None:
        finite = np.isfinite(block)
        if finite.all():
            return
        refused = ~finite if self.refuse else np.isinf(block)
        if not refused.any():
            return
        r, c = (int(k) for k in np.argwhere(refused)[0])
        name = self.schema.feature_names[c]
        owner = batch.column(self.schema.columns.set)[r].as_py()
        where = f"{self.source.name}, row {row + r} (from 0, of set {owner!r}), column {name!r}"
        if np.isinf(block[r, c]):
            raise InputError(
                f"{where}: the value {batch.column(name)[r].as_py()} is infinite "
                "(or too large for 32 bits); correct or drop it"
            )
        raise InputError(
            f"{where}: no value. Fill or drop it, or choose a rule for missing values "
            "('mean' or 'zero')."
        )


def number_column(column: Any) -> Array:
    """A column of numbers as 64-bit ones; NaN where there is none."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
    if pa.types.is_decimal(column.type) or column.null_count:
        column = column.cast(pa.float64())
    numbers: Array = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return numbers


def text_column(column: Any) -> tuple[list[str], Array]:
    """The distinct values of a column as text, and which of them each row has (-1: none)."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return [as_text(v) for v in column.dictionary.to_pylist()], indices


def as_text(value: Any) -> str:
    """What a category or a class is called: 2.0 is 2, for CSV and gaps make fractions."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _values(source: Source, names: list[str]) -> dict[str, tuple[str, ...]]:
    seen: dict[str, set[str]] = {n: set() for n in names}
    for batch in source.batches(names) if names else ():
        for name in names:
            values, codes = text_column(batch.column(name))
            seen[name] |= {values[k] for k in np.unique(codes) if k >= 0}
            if len(seen[name]) > MOST_CATEGORIES:
                raise InputError(
                    f"{source.name}, column {name!r}: more than {MOST_CATEGORIES} categories; "
                    "is it a name? Leave it out of the features."
                )
    return {n: tuple(sorted(v)) for n, v in seen.items()}


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind))


def _is_category(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind) or pa.types.is_boolean(kind))


def _not_a_number(source: Source, name: str) -> InputError:
    example = ""
    row = 0
    for batch in source.batches([name]):
        for k, value in enumerate(batch.column(0).to_pylist()):
            try:
                float(value)
            except (TypeError, ValueError):
                if value is not None:
                    example = f" (row {row + k} from 0 holds {value!r})"
                    break
        row += len(batch)
        if example:
            break
    return InputError(
        f"{source.name}: column {name!r} holds text where numbers belong{example}; "
        "name it among the categories, choose the features without it, or correct it"
    )
