"""Types of columns: which can be features, and messages about those that cannot."""

from __future__ import annotations

import re
from typing import Any

from capnets.errors import InputError
from capnets.ingest.source import Source

__all__ = [
    "check_amounts", "check_plain", "is_category", "is_date", "is_number", "is_text", "is_wide",
    "looks_like_date", "not_a_number",
]  # fmt: skip

#: Text that begins like 2024-05-01, 01/05/2024 or 1.5.24.
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b")


def is_wide(kind: Any) -> bool:
    """Return whether numbers of this type may lose digits in float32."""
    import pyarrow as pa

    narrow = (pa.float16(), pa.float32(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.null())
    return kind not in narrow


def is_number(kind: Any) -> bool:
    """Return whether a column type holds numbers, or nothing at all."""
    import pyarrow as pa

    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind))


def is_text(kind: Any) -> bool:
    """Return whether a column type holds text."""
    import pyarrow as pa

    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def is_date(kind: Any) -> bool:
    """Return whether a column type holds days, or days with a time."""
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_category(kind: Any) -> bool:
    """Return whether a column type always holds categories."""
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
    if not (is_number(kind) or pa.types.is_boolean(kind)):
        raise InputError(
            f"{source.name}, column {name!r} holds {_words(kind)} where numbers belong; turn it "
            f"into numbers{' (days since some day)' * pa.types.is_temporal(kind)}, or name another "
            "column"
        )


def not_a_number(source: Source, name: str) -> InputError:
    """Return an error about a feature that is neither a number nor a category."""
    import pyarrow as pa

    kind = source.schema.field(name).type
    row, text = _first_text(source, name)
    if pa.types.is_temporal(kind):
        advice = "turn them into numbers (hours, minutes)"
    elif looks_like_date(text):
        advice = (
            "it looks like dates: convert it with pandas.to_datetime or, in a CSV file, write them "
            "as 2024-05-01"
        )
    elif is_text(kind):
        advice = (
            f"name it among the categories (--categories {name}) or, with very many values, among "
            f"the hashed ones (--hashed {name}), correct it"
        )
    else:
        advice = "turn it into numbers"
    example = f" (row {row}, from 0, holds {text!r})" if text else ""
    return InputError(
        f"{source.name}: column {name!r} holds {_words(kind)} where numbers belong{example}; "
        f"{advice}, or choose the features without it"
    )


def looks_like_date(text: str) -> bool:
    """Return whether text begins like a date.

    >>> looks_like_date("2024-05-01 12:30"), looks_like_date("24-pack")
    (True, False)
    """
    return DATE.match(text) is not None


def _words(kind: Any) -> str:
    """Describe the values of a column type in a message."""
    import pyarrow as pa

    t = pa.types
    if is_text(kind):
        return "text"
    if t.is_temporal(kind):
        return f"dates or times ({kind})"
    if t.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return f"lists or records ({kind})"
    return str(kind)


def _first_text(source: Source, name: str) -> tuple[int, str]:
    """Return the first row whose text is not a number, and the text; empty if there is none."""
    row = 0
    for batch in source.batches([name]):
        for k, value in enumerate(batch.column(0).to_pylist()):
            try:
                float(value if isinstance(value, str) else 0)
            except ValueError:
                return row + k, value
        row += len(batch)
    return row, ""
