"""Read the covariates of sets: columns that describe a set as a whole, repeated in its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Feature, Schema
from capnets.ingest.encode import Encoder, text_column
from capnets.ingest.set_columns import Owners
from capnets.ingest.source import Source
from capnets.sets import Array

__all__ = ["CovariateReader", "fill_covariates"]

#: Word for a missing value in messages, and its code.
NOTHING, MISSING = "no value", -1


class CovariateReader:
    """Encode the covariates of every set; values that vary within a set are an error.

    Parameters
    ----------
    source, schema
        The table, and the encoding of its covariates.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source = source
        self.columns = [f.name for f in schema.covariates]
        self.encoder = Encoder(replace(schema, features=schema.covariates), source)
        self.values: Array = np.empty((0, self.encoder.width), dtype=np.float32)
        self.known: list[dict[str, int]] = [{} for _ in self.columns]
        self.codes: Array = np.empty((0, len(self.columns)), dtype=np.int64)
        self.first_row: Array = np.empty(0, dtype=np.int64)

    def add(self, batch: Any, codes: Array, owners: Owners, row: int) -> None:
        """Add rows, whose sets are `codes`; `row` is the number of the first row."""
        block = self.encoder.block(batch, row)
        # As written: two values may be encoded alike, by a hash or as unseen categories.
        written = np.stack([self._written(batch, k) for k in range(len(self.columns))], axis=1)
        before = len(self.values)
        if len(owners) > before:
            new, first = np.unique(codes, return_index=True)
            # Sets are numbered by appearance, so these are before, before + 1, …
            first = first[new >= before]
            self.values = np.concatenate([self.values, block[first]])
            self.codes = np.concatenate([self.codes, written[first]])
            self.first_row = np.concatenate([self.first_row, first + row])
        varies = np.argwhere(written != self.codes[codes])
        if len(varies):
            k, c = varies[0].tolist()
            number = int(codes[k])
            raise InputError(
                f"{self.source.name}, column {self.columns[c]!r}: set {owners.name(number)} has "
                f"{self._show(c, self.codes[number, c])} in row {self.first_row[number]} and "
                f"{self._show(c, written[k, c])} in row {row + k} (from 0); a covariate must be "
                "constant within a set. Correct it, or name it among the features."
            )

    def missing(self) -> dict[str, int]:
        """Return the number of sets without a value, by column."""
        counts = (self.codes == MISSING).sum(axis=0)
        return dict(zip(self.columns, counts.tolist(), strict=True))

    def _written(self, batch: Any, k: int) -> Array:
        """Return a number for the value of every row, the same for equal values."""
        texts, codes = text_column(batch.column(self.columns[k]))
        known = self.known[k]
        table = np.array([known.setdefault(t, len(known)) for t in texts] + [MISSING])
        numbers: Array = table[codes]
        return numbers

    def _show(self, column: int, code: int) -> str:
        return NOTHING if code == MISSING else repr(list(self.known[column])[code])


def fill_covariates(schema: Schema, values: Array, *, learn: bool) -> tuple[Schema, Array]:
    """Impute missing covariates; with `learn`, their means over all sets become the imputation."""
    rule = schema.columns.missing
    if rule == "refuse" or not schema.covariates:
        return schema, values
    if learn:
        known = ~np.isnan(values)
        sums = np.where(known, values, 0.0).sum(axis=0, dtype=np.float64)
        means = sums / np.maximum(known.sum(axis=0), 1)
        schema = replace(schema, covariates=_filled(schema.covariates, means, zero=rule == "zero"))
    fills = [(f.fill or 0.0) - f.offset for f in schema.covariates for _ in f.names]
    return schema, np.where(np.isnan(values), np.array(fills, dtype=np.float32), values)


def _filled(features: tuple[Feature, ...], means: Array, *, zero: bool) -> tuple[Feature, ...]:
    found, place = [], 0
    for f in features:
        if f.kind == "number":
            f = replace(f, fill=0.0 if zero else float(means[place]) + f.offset)
        found.append(f)
        place += len(f.names)
    return tuple(found)
