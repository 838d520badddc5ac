"""Types of columns: which can be features, and messages about those that cannot."""

from __future__ import annotations

from typing import Any

from capnets.errors import InputError
from capnets.ingest.source import Source

__all__ = [
    "check_amounts", "check_plain", "is_category", "is_date", "is_number", "is_text", "is_wide",
    "not_a_number",
]  # fmt: skip


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
    if pa.types.is_temporal(kind):
        advice = "turn them into numbers (hours, minutes)"
    elif is_text(kind):
        advice = (
            f"name it among the categories (--categories {name}) or, with very many values, among "
            f"the hashed ones (--hashed {name}), correct it"
        )
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
    if is_text(kind):
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
