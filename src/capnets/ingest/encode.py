"""Encode batches of rows as float32 blocks, by a schema."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Feature, Schema, missing_column
from capnets.ingest.dates import days_of, weekdays
from capnets.ingest.kinds import is_date, is_number, not_a_number
from capnets.ingest.source import Source
from capnets.sets import Array

__all__ = [
    "Encoder", "as_meant", "as_text", "bucket", "distinct_values", "number_column", "place_column",
    "text_column",
]  # fmt: skip

#: An imputation is part of a trained network.
RULE = 'Choose it when training: --missing mean (or zero), Columns(missing="mean").'


class Encoder:
    """Encode the feature columns of one source.

    Parameters
    ----------
    schema
        Features and their encoding.
    source
        Table to read. A missing feature is an error; additional columns are ignored.
    """

    def __init__(self, schema: Schema, source: Source) -> None:
        self.schema, self.source = schema, source
        names = source.names
        types = dict(zip(names, source.schema.types, strict=True))
        for feature in schema.features:
            if feature.name not in names:
                raise missing_column(feature.name, names, where=source.name)
            right = {"number": is_number, "date": is_date}.get(feature.kind)
            if right is not None and not right(types[feature.name]):
                raise not_a_number(source, feature.name)
        self.width = len(schema.feature_names)
        self.refuse = schema.columns.missing == "refuse"

    def block(self, batch: Any, row: int) -> Array:
        """Return rows x features, NaN for missing numbers; `row` is the number of the first row."""
        out = np.zeros((len(batch), self.width), dtype=np.float32)
        place = 0
        with np.errstate(over="ignore"):  # values beyond float32 become infinite and are refused
            for feature in self.schema.features:
                own = out[:, place : place + len(feature.names)]
                self._encode(feature, batch.column(feature.name), own, row)
                place += len(feature.names)
        self._check(out, batch, row)
        return out

    def _encode(self, feature: Feature, column: Any, out: Array, row: int) -> None:
        """Write the numbers of a column; ages and gaps of dates follow when all rows are read."""
        if feature.kind == "category":
            self._categories(feature, column, out, row)
        elif feature.kind == "hashed":
            self._hashed(feature, column, out, row)
        elif feature.kind == "date":
            days = days_of(column)
            out[:, :7] = weekdays(days)
            out[np.isnan(days), 7:] = np.nan
        else:
            out[:, 0] = number_column(column) - feature.offset

    def _hashed(self, feature: Feature, column: Any, out: Array, row: int) -> None:
        values, codes = text_column(column)
        missing = np.flatnonzero(codes < 0)
        if len(missing) and self.refuse:
            raise InputError(
                f"{self.source.name}, row {row + int(missing[0])} (from 0), column "
                f"{feature.name!r}: no value; with an imputation it is encoded as all zeros. {RULE}"
            )
        buckets = np.array([bucket(v, feature.buckets) for v in values] or [0])
        known = np.flatnonzero(codes >= 0)
        out[known, buckets[codes[known]]] = 1.0

    def _categories(self, feature: Feature, column: Any, out: Array, row: int) -> None:
        assert feature.categories is not None
        # Match the text, else the value: a column may be numbers in one file and text in another.
        written = {c: k for k, c in enumerate(feature.categories)}
        places = {_category(c): k for c, k in written.items()} | written
        values, codes = text_column(column)
        known = np.array([places.get(v, places.get(_category(v), -1)) for v in values] + [-1])
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
                f"With an imputation it is encoded as all zeros. {RULE}"
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
        name = self.schema.feature_columns[c]
        owner = batch.column(self.schema.columns.set)[r].as_py()
        owner = as_meant(owner) if self.source.untyped else owner
        where = f"{self.source.name}, row {row + r} (from 0, of set {owner!r}), column {name!r}"
        if np.isinf(block[r, c]):
            raise InputError(
                f"{where}: the value {batch.column(name)[r].as_py()} is infinite "
                "(or too large for float32); correct or drop it"
            )
        raise InputError(f"{where}: no value. Fill or drop it, or impute it. {RULE}")


def number_column(column: Any) -> Array:
    """Return a column of numbers as float64, NaN for missing values."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_decimal(column.type) or column.null_count:
        column = column.cast(
            pa.float64(), safe=False
        )  # rounds to the nearest float, as to_numpy does without missing values
    numbers: Array = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return numbers


def place_column(column: Any) -> Array:
    """Return a column as numbers to sort by; integers and times keep all digits."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if pa.types.is_string(column.type):
        with suppress(pa.ArrowInvalid):  # fractions
            column = column.cast(pa.int64())
    if not pa.types.is_integer(column.type):
        return number_column(column)
    places: Array = column.to_numpy(zero_copy_only=False)
    return places


def distinct_values(column: Any) -> tuple[list[Any], Array]:
    """Return the distinct values of a column and the code of each row (-1: missing)."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return column.dictionary.to_pylist(), indices


def text_column(column: Any) -> tuple[list[str], Array]:
    """Return the distinct values of a column as text and the code of each row (-1: missing)."""
    values, codes = distinct_values(column)
    return [as_text(v) for v in values], codes


def bucket(value: str, buckets: int) -> int:
    """Return the bucket of a category, the same on every machine."""
    digest = hashlib.blake2b(_category(value).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % buckets


def as_text(value: Any) -> str:
    """Return the name of a category or class: 2.0 is 2, as missing values make integers floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_meant(value: Any) -> Any:
    """Return the number that has this canonical spelling, if any: 1 is a number, 0001 a name."""
    for kind in (int, float) if isinstance(value, str) else ():
        try:
            number = kind(value)
        except ValueError:
            continue
        fits = -(2**63) <= number < 2**64 if isinstance(number, int) else isfinite(number)
        if fits and str(number) == value:
            return number
    return value


def _category(written: str) -> str:
    """Return the name of a category that is a number or a Boolean: 2.0 is 2, true is True."""
    spelled = written.capitalize()
    return spelled if spelled in ("True", "False") else as_text(as_meant(written))
