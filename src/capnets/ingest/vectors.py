"""Columns of vectors: lists of numbers of equal length become one column per entry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.source import Source

__all__ = ["Vectors", "unfolded"]


def unfolded(source: Source) -> Source:
    """Return a table with the entries of vectors (`name[0]`, `name[1]`) as columns."""
    kinds = dict(zip(source.schema.names, source.schema.types, strict=True))
    return Vectors(source) if any(map(_is_vector, kinds.values())) else source


class Vectors(Source):
    """A table with one column per entry of every vector.

    Parameters
    ----------
    source
        The table as stored. The first row gives the length of a vector.
    """

    def __init__(self, source: Source) -> None:
        import pyarrow as pa

        self.source, self.name, self.rows = source, source.name, source.rows
        self.untyped, self.header = source.untyped, source.header
        self.lengths: dict[str, int] = {}
        fields = []
        for field in source.schema:
            if not _is_vector(field.type):
                fields.append(field)
                continue
            self.lengths[field.name] = self._length(field)
            inner = field.type.value_type
            fields += [pa.field(n, inner) for n in self._entries(field.name)]
        self.schema = pa.schema(fields, metadata=source.schema.metadata)

    def with_text(self, columns: Collection[str]) -> Source:
        """Return the same table with these columns as text, if column types are guesses."""
        return Vectors(self.source.with_text(columns))

    def _length(self, field: Any) -> int:
        import pyarrow as pa

        if pa.types.is_fixed_size_list(field.type):
            return int(field.type.list_size)
        for batch in self.source.batches([field.name]):
            for value in batch.column(0):
                if value.is_valid:
                    return len(value)
        raise InputError(f"{self.name}: column {field.name!r} holds no vector; leave it out")

    def _entries(self, name: str) -> list[str]:
        return [f"{name}[{k}]" for k in range(self.lengths[name])]

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        wanted = {name: [n for n in self._entries(name) if n in columns] for name in self.lengths}
        stored = [n for n in self.source.names if n in columns or wanted.get(n)]
        row = 0
        for batch in self.source.batches(stored):
            found = {n: batch.column(n) for n in stored if n not in self.lengths}
            for name in self.lengths:
                if wanted[name]:
                    found |= self._numbers(name, batch.column(name), row)
            yield pa.record_batch([found[n] for n in columns], names=list(columns))
            row += len(batch)

    def _numbers(self, name: str, column: Any, row: int) -> dict[str, Any]:
        """Return the entries of a vector column by name; a missing vector has missing entries."""
        import pyarrow as pa
        import pyarrow.compute as pc

        length = self.lengths[name]
        sizes = pc.list_value_length(column).fill_null(length).to_numpy(zero_copy_only=False)
        if (sizes != length).any():
            k = int(np.argmax(sizes != length))
            raise InputError(
                f"{self.name}, row {row + k} (from 0), column {name!r}: {sizes[k]} numbers, but "
                f"{length} in the first row; all vectors of a column need one length"
            )
        flat = column.flatten().cast(pa.float64(), safe=False)
        numbers = np.full((len(column), length), np.nan)
        known = column.is_valid().to_numpy(zero_copy_only=False)
        numbers[known] = flat.to_numpy(zero_copy_only=False).reshape(-1, length)
        kind = column.type.value_type
        return {
            n: pa.array(numbers[:, k], from_pandas=True).cast(kind, safe=False)
            for k, n in enumerate(self._entries(name))
        }


def _is_vector(kind: Any) -> bool:
    import pyarrow as pa

    t = pa.types
    lists = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return bool(lists and (t.is_floating(kind.value_type) or t.is_integer(kind.value_type)))
