"""Read columns that describe sets: the set of each row, and values constant within a set."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.encode import as_meant, as_text, distinct_values, number_column
from capnets.ingest.kinds import check_amounts
from capnets.ingest.source import GAPS, Source
from capnets.sets import Array

__all__ = ["Owners", "PerSet"]

#: Spellings of the parts of a split.
SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
}


class Owners:
    """Number the sets in the order in which they first appear.

    Parameters
    ----------
    source, column
        The table and its set column.
    """

    def __init__(self, source: Source, column: str) -> None:
        self.source, self.column = source, column
        self.numbers: dict[Any, int] = {}
        self.parts: list[Array] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, batch: Any, row: int) -> Array:
        """Return the number of the set of each row; `row` is the number of the first row."""
        import pyarrow as pa

        column = batch.column(self.column)
        if column.null_count:
            first = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(
                f"{self.source.name}, row {first} (from 0), column {self.column!r}: no value; "
                "every instance needs its set"
            )
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        indices = column.indices.to_numpy(zero_copy_only=False)
        # By first appearance: an Arrow dictionary may list unused values, in any order.
        present, first_rows = np.unique(indices, return_index=True)
        translate = np.zeros(int(present.max(initial=0)) + 1, dtype=np.int32)
        values = column.dictionary.take(pa.array(present)).to_pylist()
        for k in np.argsort(first_rows):
            translate[present[k]] = self.numbers.setdefault(values[k], len(self.numbers))
        codes: Array = translate[indices]
        self.parts.append(codes)
        return codes

    def codes(self) -> Array:
        """Return the number of the set of every row so far."""
        return np.concatenate(self.parts)

    def ids(self) -> Array:
        """Return the names of the sets, as numbers if all are numbers, otherwise as text."""
        names = [self._meant(name) for name in self.numbers]
        for kind, dtype in ((int, np.int64), (int, np.uint64), (float, np.float64)):
            if all(type(name) is kind for name in names):
                try:
                    return np.array(names, dtype=dtype)
                except OverflowError:
                    continue
        return np.array([str(name) for name in names])

    def name(self, number: int) -> str:
        """Return the name of a set for a message."""
        return repr(self._meant(next(n for n, k in self.numbers.items() if k == number)))

    def _meant(self, name: Any) -> Any:
        # Only at the end, because 1 and 1.0 are two names, but one number.
        return as_meant(name) if self.source.untyped else name


class PerSet:
    """A column with one value per set, repeated in its rows; varying values are an error.

    Parameters
    ----------
    source, column
        The table and the column.
    names
        Whether values are names, which `known` numbers, or amounts.
    label
        Whether amounts must be 0 or 1.
    """

    def __init__(
        self, source: Source, column: str, *, names: bool = False, label: bool = False
    ) -> None:
        if not names:
            check_amounts(source, column)
        self.source, self.column, self.names, self.label = source, column, names, label
        self.known: dict[Any, int] = {}
        self.values: Array = np.empty(0)
        self.first_row: Array = np.empty(0, dtype=np.int64)

    def add(self, batch: Any, codes: Array, owners: Owners, row: int) -> None:
        """Add rows, whose sets are `codes`; `row` is the number of the first row."""
        values = self._read(batch, row)
        before = len(self.values)
        if len(owners) > before:
            new, first = np.unique(codes, return_index=True)
            # Sets are numbered by appearance, so these are before, before + 1, …
            first = first[new >= before]
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

    def amounts(self, classes: tuple[str | int, ...] | None) -> Array:
        """Return one number per set; for names, the number of the class."""
        if not self.names:
            return self.values.astype(np.float32)
        assert classes is not None
        # By name: another table may hold the same classes as another type.
        places = {as_text(c): k for k, c in enumerate(classes)}
        for name, code in self.known.items():
            if as_text(name) not in places:
                number = int(np.argmax(self.values == code))
                raise InputError(
                    f"{self.source.name}, column {self.column!r}, row {self.first_row[number]} "
                    f"(from 0): the label {name!r} is no known class ({', '.join(places)})"
                )
        table = np.array([places[as_text(n)] for n in self.known], dtype=np.float32)
        return table[self.values.astype(np.int64)]

    def splits(self) -> Array:
        """Return the part of a split that each set is assigned to: train, valid or test."""
        found: Array = np.array([self._split(n) for n in self.known])[self.values.astype(np.int64)]
        return found

    def _split(self, name: Any) -> str:
        for known in SPLITS:
            if str(name).lower() in SPLITS[known]:
                return known
        raise InputError(
            f"{self.source.name}, column {self.column!r}: the split {name!r} is unknown; "
            "expected train, valid or test"
        )

    def _read(self, batch: Any, row: int) -> Array:
        column = batch.column(self.column)
        if self.names:
            found, codes = distinct_values(column)
            table = np.full(len(found) + 1, -1.0)
            for k in np.unique(codes[codes >= 0]):  # an Arrow dictionary may list unused values
                if self.source.untyped and found[k] in GAPS:
                    continue  # a missing label must not become a class
                meant = as_meant(found[k]) if self.source.untyped else found[k]
                table[k] = self.known.setdefault(_name(meant), len(self.known))
            values = table[codes]
            bad = values < 0
        else:
            values = number_column(column)
            bad = ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            what = "no value" if column[k].as_py() is None else f"the value {column[k].as_py()}"
            raise InputError(
                f"{self.source.name}, row {row + k} (from 0), column {self.column!r}: {what}; "
                "every set needs a finite one. Correct it, or drop the set."
            )
        if self.label and not (right := np.isin(values, (0, 1))).all():
            k = int(np.argmin(right))
            raise InputError(
                f"{self.source.name}, row {row + k} (from 0), column {self.column!r}: the value "
                f"{values[k]:g}; several targets of a classifier are labels of 0 and 1"
            )
        return values

    def _show(self, value: float) -> str:
        return repr(list(self.known)[int(value)]) if self.names else f"{value:g}"


def _name(value: Any) -> Any:
    """Return a value as a name: numbers, Booleans and text are kept, and 2.0 is 2."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if isinstance(value, int | str) else as_text(value)
