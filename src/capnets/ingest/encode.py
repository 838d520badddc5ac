"""Encode batches of rows as float32 blocks, by a schema."""

from __future__ import annotations

from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Columns, Feature, Schema, matches, missing_column
from capnets.ingest.sources import Source
from capnets.sets import Array
from capnets.sets.precision import Range

__all__ = [
    "Encoder", "as_meant", "as_text", "check_amounts", "check_plain", "distinct_values",
    "learn_schema", "number_column", "place_column", "text_column",
]  # fmt: skip

#: A category with more values than this is probably an identifier.
MOST_CATEGORIES = 256
#: An imputation is part of a trained network.
RULE = 'Choose it when training: --missing mean (or zero), Columns(missing="mean").'


def learn_schema(source: Source, columns: Columns) -> Schema:
    """Learn which columns are features, the values of categories, and the offsets of numbers.

    Reads only columns of categories and of 64-bit numbers. Imputed values are learned later, when
    all numbers are read.
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
    chosen = columns.choose(names, where=source.name, index=source.index)
    types = dict(zip(names, source.schema.types, strict=True))
    categories = [n for n in chosen if columns.is_category(n) or _is_category(types[n])]
    check_plain(source, chosen)
    for name in chosen:
        if name not in categories and not _is_number(types[name]):
            raise _not_a_number(source, name)
    numbers = [n for n in chosen if n not in categories and _is_wide(types[n])]
    seen, ranges = _look_through(source.with_text(categories), categories, numbers)
    features = tuple(
        Feature(n, categories=seen[n])
        if n in seen
        else Feature(n, offset=ranges[n].middle() if n in ranges and ranges[n].loses() else 0.0)
        for n in chosen
    )
    return Schema(columns, features)


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
            if feature.categories is None and not _is_number(types[feature.name]):
                raise _not_a_number(source, feature.name)
        self.width = len(schema.feature_names)
        self.refuse = schema.columns.missing == "refuse"

    def block(self, batch: Any, row: int) -> Array:
        """Return rows x features, NaN for missing numbers; `row` is the number of the first row."""
        out = np.zeros((len(batch), self.width), dtype=np.float32)
        place = 0
        with np.errstate(over="ignore"):  # values beyond float32 become infinite and are refused
            for feature in self.schema.features:
                column = batch.column(feature.name)
                if feature.categories is None:
                    out[:, place] = number_column(column) - feature.offset
                else:
                    self._categories(feature, column, out[:, place:], row)
                place += len(feature.names)
        self._check(out, batch, row)
        return out

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
                    "is it a name? Leave it out of the features."
                )
    return {n: tuple(sorted(v)) for n, v in seen.items()}, ranges


def _is_wide(kind: Any) -> bool:
    """Return whether numbers of this type may lose digits in float32."""
    import pyarrow as pa

    narrow = (pa.float16(), pa.float32(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.null())
    return kind not in narrow


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind))


def _is_category(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind) or pa.types.is_boolean(kind))


def check_plain(source: Source, names: list[str]) -> None:
    """Refuse columns whose entries are lists, records or of a type that Arrow does not know."""
    import pyarrow as pa

    for name in names:
        kind = source.schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if _is_bytes(kind):
            raise InputError(
                f"{source.name}: column {name!r} holds {kind} where numbers or text belong; "
                "decode it, or leave it out"
            )
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise InputError(
                f"{source.name}: column {name!r} holds {_words(kind)} where one value belongs; "
                "make a column of each entry, or leave it out"
            )


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    t = pa.types
    fixed = t.is_fixed_size_binary(kind) and not t.is_decimal(kind)
    return bool(fixed or t.is_binary(kind) or t.is_large_binary(kind))


def check_amounts(source: Source, name: str) -> None:
    """Refuse a column of amounts that does not hold numbers."""
    import pyarrow as pa

    kind = source.schema.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (_is_number(kind) or pa.types.is_boolean(kind)):
        raise InputError(
            f"{source.name}, column {name!r} holds {_words(kind)} where numbers belong; turn it "
            f"into numbers{' (days since some day)' * pa.types.is_temporal(kind)}, or name another "
            "column"
        )


def _not_a_number(source: Source, name: str) -> InputError:
    import pyarrow as pa

    kind = source.schema.field(name).type
    if pa.types.is_temporal(kind):
        advice = "turn them into numbers (days since some day, the hour, the weekday)"
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        advice = f"name it among the categories (--categories {name}), correct it"
    else:
        advice = "turn it into numbers"
    return InputError(
        f"{source.name}: column {name!r} holds {_words(kind)} where numbers belong"
        f"{_example(source, name)}; {advice}, or choose the features without it"
    )


def _words(kind: Any) -> str:
    """Describe the values of a column type in a message."""
    import pyarrow as pa

    t = pa.types
    if t.is_string(kind) or t.is_large_string(kind):
        return "text"
    if t.is_temporal(kind):
        return f"dates or times ({kind})"
    if t.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return f"lists or records ({kind})"
    return str(kind)


def _example(source: Source, name: str) -> str:
    """Describe the first row whose text is no number."""
    row = 0
    for batch in source.batches([name]):
        for k, value in enumerate(batch.column(0).to_pylist()):
            try:
                float(value if isinstance(value, str) else 0)
            except ValueError:
                return f" (row {row + k} from 0 holds {value!r})"
        row += len(batch)
    return ""
