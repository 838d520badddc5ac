"""Columns that say something about a set: which set a row belongs to, what is constant in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array
from capnets.tables.encode import number_column, text_column
from capnets.tables.sources import Source

__all__ = ["Owners", "PerSet"]


class Owners:
    """Numbers the sets in the order in which they first appear.

    Parameters
    ----------
    source, column
        What messages call the table, and its set column.
    """

    def __init__(self, source: str, column: str) -> None:
        self.source, self.column = source, column
        self.numbers: dict[Any, int] = {}
        self.parts: list[Array] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, batch: Any, row: int) -> Array:
        """The number of the set of every row; `row` is that of the first."""
        import pyarrow as pa

        column = batch.column(self.column)
        if column.null_count:
            first = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(
                f"{self.source}, row {first} (from 0), column {self.column!r}: no value; "
                "every instance needs its set"
            )
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        indices = column.indices.to_numpy(zero_copy_only=False)
        # By first appearance: an Arrow dictionary may list values that no row has, in any order.
        present, first_rows = np.unique(indices, return_index=True)
        translate = np.zeros(int(present.max(initial=0)) + 1, dtype=np.int32)
        values = column.dictionary.take(pa.array(present)).to_pylist()
        for k in np.argsort(first_rows):
            translate[present[k]] = self.numbers.setdefault(_key(values[k]), len(self.numbers))
        codes: Array = translate[indices]
        self.parts.append(codes)
        return codes

    def codes(self) -> Array:
        """The number of the set of every row so far."""
        return np.concatenate(self.parts)

    def ids(self) -> Array:
        """The sets' names: whole numbers where all are, text otherwise."""
        names = list(self.numbers)
        if all(isinstance(n, int) for n in names):
            return np.array(names, dtype=np.int64)
        return np.array([str(n) for n in names])

    def name(self, number: int) -> str:
        """The name of one set, for a message."""
        return repr(next(n for n, k in self.numbers.items() if k == number))


class PerSet:
    """A column with one value per set, repeated in its rows; a value that varies is an error.

    Parameters
    ----------
    source, column
        The table, and the column.
    names
        Whether values are names (then `known` numbers them) or amounts.
    """

    def __init__(self, source: Source, column: str, *, names: bool = False) -> None:
        self.source, self.column, self.names = source, column, names
        self.known: dict[str, int] = {}
        self.values: Array = np.empty(0)
        self.first_row: Array = np.empty(0, dtype=np.int64)

    def add(self, batch: Any, codes: Array, owners: Owners, row: int) -> None:
        """Take the values of some rows, whose sets are `codes`; `row` is that of the first."""
        values = self._read(batch, row)
        before = len(self.values)
        if len(owners) > before:
            new, first = np.unique(codes, return_index=True)
            first = first[
                new >= before
            ]  # numbers rise by appearance, so these are before, before+1, …
            self.values = np.concatenate([self.values, values[first]])
            self.first_row = np.concatenate([self.first_row, first + row])
        varies = np.flatnonzero(values != self.values[codes])
        if len(varies):
            k = int(varies[0])
            where = int(self.first_row[codes[k]])
            here, there = (self._show(v) for v in (values[k], self.values[codes[k]]))
            raise InputError(
                f"{self.source.name}, column {self.column!r}: set {owners.name(int(codes[k]))} has "
                f"{there} in row {where} and {here} in row {row + k} (from 0); "
                "it must be constant within a set"
            )

    def amounts(self, classes: tuple[str, ...] | None) -> Array:
        """One number per set; for names, which of the classes it is."""
        if not self.names:
            return self.values.astype(np.float32)
        assert classes is not None
        places = {c: k for k, c in enumerate(classes)}
        for name, code in self.known.items():
            if name not in places:
                number = int(np.argmax(self.values == code))
                raise InputError(
                    f"{self.source.name}, column {self.column!r}, row {self.first_row[number]} "
                    f"(from 0): the label {name!r} is no known class ({', '.join(classes)})"
                )
        table = np.array([places[n] for n in self.known], dtype=np.float32)
        return table[self.values.astype(np.int64)]

    def _read(self, batch: Any, row: int) -> Array:
        column = batch.column(self.column)
        if self.names:
            names, codes = text_column(column)
            table = np.array([self.known.setdefault(n, len(self.known)) for n in names] + [-1])
            values, bad = table[codes].astype(np.float64), codes < 0
        else:
            try:
                values = number_column(column)
            except (ValueError, NotImplementedError) as error:
                raise InputError(
                    f"{self.source.name}, column {self.column!r} holds text where numbers belong"
                ) from error
            bad = ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            what = "no value" if column[k].as_py() is None else f"the value {column[k].as_py()}"
            raise InputError(
                f"{self.source.name}, row {row + k} (from 0), column {self.column!r}: {what}; "
                "every set needs a finite one. Correct it, or drop the set."
            )
        return values

    def _show(self, value: float) -> str:
        return repr(list(self.known)[int(value)]) if self.names else f"{value:g}"


def _key(value: Any) -> Any:
    # CSV reads whole numbers as fractions.
    return int(value) if isinstance(value, float) and value.is_integer() else value
