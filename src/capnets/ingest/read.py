"""Read a table with one row per instance into `Sets`, in bounded memory.

The rows of a set need not be contiguous: row r of the table becomes row r of the instances, and the
index lists the rows of each set. Instances are written once, as they are read. Only the set of each
row, its place and the index of the finished sets stay in memory: at most about 50 bytes per row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.columns import Columns, Schema, missing_column
from capnets.ingest.covariates import CovariateReader, fill_covariates
from capnets.ingest.dates import ages_and_gaps, days_of
from capnets.ingest.encode import Encoder, as_text, place_column
from capnets.ingest.instances import FilePool, MemoryPool
from capnets.ingest.kinds import check_plain
from capnets.ingest.learning import learn_schema
from capnets.ingest.npz import read_npz
from capnets.ingest.set_columns import Owners, PerSet
from capnets.ingest.set_data import SetData
from capnets.ingest.sources import FORMATS, Source, open_source
from capnets.progress import Progress
from capnets.sets import Array, offsets_of

__all__ = ["SUFFIXES", "names_classes", "read_table"]

#: Suffixes of the files that can be read.
SUFFIXES = tuple(FORMATS)


def read_table(
    table: Any,
    columns: Columns | Schema | None,
    *,
    labels: bool = True,
    classify: bool = False,
    folder: str | Path | None = None,
    force: bool = False,
    learning: bool | None = None,
    progress: Progress | None = None,
) -> SetData:
    """Read instances and group them into sets, in the order in which the sets first appear.

    Parameters
    ----------
    table
        A Parquet, CSV, TSV, Feather or .npz file, a pandas frame or an Arrow table.
    columns
        `Columns` to learn a schema from this table, or the `Schema` of a run to read it by. None
        for the arrays of an .npz file.
    labels
        Whether to read targets; if not, their columns need not exist. Groups and weights are read
        with them, and whenever a schema is learned.
    classify
        Whether a target of numbers names classes (several: whether each is a label of 0 and 1).
        Text, Booleans and categories always do.
    folder
        Folder to store the sets in; they are then memory-mapped instead of held in memory.
    force
        Whether to replace sets that are already in the folder.
    learning
        As in `Sets.from_arrays`, for .npz files; a schema learns offsets instead.
    progress
        Called after every batch of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {"basket": [1, 1, 2], "price": [2.0, 3.0, 4.0], "worth": [5.0, 5.0, 4.0]}
    ... )
    >>> table = read_table(frame, Columns(set="basket", target="worth"))
    >>> table.sets.y.tolist(), table.sets.sizes.tolist(), table.sets.feature_names
    ([5.0, 4.0], [2, 1], ('price',))
    """
    if columns is None:
        return read_npz(table, labels=labels, learning=learning)
    source = open_source(table)
    schema = columns if isinstance(columns, Schema) else learn_schema(source, columns)
    learned = schema is not columns
    source = source.with_text(
        [*named_columns(schema, classify=classify), *_long_order(schema, source)]
    )
    if folder is not None and (Path(folder) / "sets.json").exists() and not force:
        raise InputError(f"{folder} already holds sets; choose another folder, or replace it")
    encoder = Encoder(schema, source)
    reader = SetReader(source, schema, labels=labels, classify=classify, learning=learned)
    check_plain(source, reader.needed())
    pool = MemoryPool(encoder.width) if folder is None else FilePool(encoder.width, Path(folder))
    try:
        for batch in source.batches(reader.needed()):
            pool.add(encoder.block(batch, reader.rows))
            reader.add(batch)
            if progress is not None:
                progress(reader.rows, source.rows)
        if not reader.rows:
            raise InputError(f"{source.name} has no rows; at least one instance is needed")
        reader.place_dates(pool)
        if learned:
            schema = replace(
                schema, classes=reader.classes(), features=_filled(schema, pool.means())
            )
        if schema.columns.missing != "refuse":
            pool.fill(_fills(schema))
        schema, arrays = reader.arrays(schema, learn=learned)
        sets = pool.finish(arrays, schema.feature_names, schema.covariate_names)
    finally:
        pool.close()
    missing = dict(zip(schema.feature_columns, (pool.rows - pool.counts).tolist(), strict=True))
    missing |= reader.missing()
    return SetData(
        sets, schema, reader.groups(), schema.classes, _ignored(source, schema), missing,
        source.header, splits=reader.splits(),
    )  # fmt: skip


class SetReader:
    """Read everything but the features: sets, order, targets, groups and weights."""

    def __init__(
        self, source: Source, schema: Schema, *, labels: bool, classify: bool, learning: bool
    ) -> None:
        columns, self.source, self.schema = schema.columns, source, schema
        wanted = [columns.set, columns.order, *(columns.target if labels else ())]
        training = labels or learning
        extra = (columns.group, columns.weight, columns.split)
        group, weight, split = extra if training else (None, None, None)
        wanted += [group, weight, split]
        for name in filter(None, wanted):
            if name not in source.names:
                raise missing_column(name, source.names, where=source.name)
        self.owners = Owners(source, columns.set)
        self.places: list[Array] = []
        self.dates: dict[str, list[Array]] = {f.name: [] for f in schema.features if f.date}
        self.rows = 0
        self.targets = self._targets(classify, learning) if labels else []
        self.group = PerSet(source, group, names=True) if group else None
        self.weight = PerSet(source, weight) if weight else None
        self.split = PerSet(source, split, names=True) if split else None
        self.covariates = CovariateReader(source, schema) if schema.covariates else None

    @property
    def _per_set(self) -> list[PerSet]:
        found = (*self.targets, self.group, self.weight, self.split)
        return [p for p in found if p is not None]

    def _targets(self, classify: bool, learning: bool) -> list[PerSet]:
        source, columns = self.source, self.schema.columns.target
        if len(columns) == 1:
            names = self.schema.classes is not None
            if learning:
                names = classify or names_classes(source, columns[0])
            return [PerSet(source, columns[0], names=names)]
        for column in columns:
            if names_classes(source, column) and not _is_boolean(source, column):
                raise InputError(
                    f"{source.name}, column {column!r} names classes; of several targets each has "
                    "to be an amount, or a label of 0 and 1. Choose one target, or make a column "
                    "of 0 and 1 for every class."
                )
        return [PerSet(source, t, label=classify) for t in columns]

    def needed(self) -> list[str]:
        columns = self.schema.columns
        per_set = [p.column for p in self._per_set]
        order = [columns.order] if columns.order else []
        features = [f.name for f in (*self.schema.features, *self.schema.covariates)]
        return list(dict.fromkeys([columns.set, *per_set, *order, *features]))

    def add(self, batch: Any) -> None:
        codes = self.owners.add(batch, self.rows)
        for per_set in self._per_set:
            per_set.add(batch, codes, self.owners, self.rows)
        if self.covariates is not None:
            self.covariates.add(batch, codes, self.owners, self.rows)
        if (order := self.schema.columns.order) is not None:
            self.places.append(self._places(batch, order))
        for name, days in self.dates.items():
            days.append(days_of(batch.column(name)))
        self.rows += len(batch)

    def place_dates(self, pool: MemoryPool) -> None:
        """Write ages and gaps of dates, which depend on the other rows of a set."""
        names = self.schema.feature_names
        for name, days in self.dates.items():
            values = ages_and_gaps(np.concatenate(days), self.owners.codes())
            pool.put(names.index(f"{name} age"), values.astype(np.float32))

    def _places(self, batch: Any, order: str) -> Array:
        where, column = f"{self.source.name}, column {order!r}", batch.column(order)
        gaps = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if gaps.any():
            row = self.rows + int(np.argmax(gaps))
            raise InputError(
                f"{where}, row {row} (from 0): no value; an order needs one in every row"
            )
        try:
            return place_column(column)
        except (ValueError, NotImplementedError) as error:
            raise InputError(f"{where}: an order needs numbers or times ({error})") from error

    def classes(self) -> tuple[str | int, ...] | None:
        """Return the classes of a single target, numbers in rising order, or None for amounts."""
        if not self.targets or not self.targets[0].names:
            return None
        column, known = self.targets[0].column, list(self.targets[0].known)
        where = f"{self.source.name}, column {column!r}"
        fractions = [c for c in known if isinstance(c, float)]
        if fractions and all(map(_is_number, known)) and not _is_category(self.source, column):
            raise InputError(
                f"{where} holds fractions such as {fractions[0]}: these are amounts, not classes; "
                "use SetRegressor (on the command line, leave out --classify)"
            )
        if not all(isinstance(c, int) for c in known):
            known = [as_text(c) for c in known]
        if len(known) < 2:
            raise InputError(
                f"{where}: there is only one class ({known[0]}); nothing can be learned from it"
            )
        return tuple(sorted(known))

    def groups(self) -> Array | None:
        return None if self.group is None else self.group.values.astype(np.int64)

    def splits(self) -> Array | None:
        """Return the part that the table assigns to every set: train, valid or test."""
        return None if self.split is None else self.split.splits()

    def missing(self) -> dict[str, int]:
        """Return the number of sets that miss a covariate, by column."""
        return {} if self.covariates is None else self.covariates.missing()

    def arrays(self, schema: Schema, *, learn: bool) -> tuple[Schema, dict[str, Array]]:
        """Return the arrays of the sets, and the schema with the imputation of covariates."""
        codes = self.owners.codes()
        if self.places:
            index = np.lexsort((np.concatenate(self.places), codes))
        elif (codes[1:] >= codes[:-1]).all():
            index = np.arange(len(codes))
        else:
            index = np.argsort(codes, kind="stable")
        offsets = offsets_of(np.bincount(codes))
        arrays = {"index": index, "offsets": offsets, "ids": self.owners.ids()}
        if self.targets:
            y = np.stack([t.amounts(schema.classes) for t in self.targets], axis=1)
            arrays["y"] = y[:, 0] if y.shape[1] == 1 else y
        if self.weight is not None:
            arrays["weights"] = self.weight.values.astype(np.float32)
        if self.covariates is not None:
            values = self.covariates.values
            schema, arrays["covariates"] = fill_covariates(schema, values, learn=learn)
        return schema, arrays


def names_classes(source: Source, column: str) -> bool:
    """Return whether the type of a target column names classes: text, Booleans, categories."""
    import pyarrow as pa

    kind = source.schema.field(column).type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return text or _is_boolean(source, column) or _is_category(source, column)


def _is_boolean(source: Source, column: str) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_boolean(source.schema.field(column).type))


def _is_category(source: Source, column: str) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(source.schema.field(column).type))


def _is_number(name: Any) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def named_columns(schema: Schema, *, classify: bool) -> list[str]:
    """Return the columns whose values are names: of sets, groups, categories and classes."""
    columns = schema.columns
    names = [
        columns.set,
        columns.group,
        columns.split,
        *(f.name for f in (*schema.features, *schema.covariates) if f.categories or f.buckets),
    ]
    if (classify or schema.classes is not None) and len(columns.target) == 1:
        names += columns.target
    return [name for name in names if name is not None]


def _long_order(schema: Schema, source: Source) -> list[str]:
    """Return the order column if it holds numbers; a guessed type may not keep all digits."""
    import pyarrow as pa

    order = schema.columns.order
    if order not in source.names or order in (f.name for f in schema.features):
        return []
    return [order] if pa.types.is_floating(source.schema.field(order).type) else []


def _filled(schema: Schema, means: Array) -> tuple[Any, ...]:
    if schema.columns.missing == "refuse":
        return schema.features
    at = dict(zip(schema.feature_columns, means.tolist(), strict=True))
    zero = schema.columns.missing == "zero"
    return tuple(
        replace(f, fill=0.0 if zero else at[f.name] + f.offset) if f.kind == "number" else f
        for f in schema.features
    )


def _fills(schema: Schema) -> Array:
    fills = [(f.fill or 0.0) - f.offset for f in schema.features for _ in f.names]
    return np.array(fills, dtype=np.float32)


def _ignored(source: Source, schema: Schema) -> tuple[str, ...]:
    columns = schema.columns
    used = {columns.set, *columns.target, columns.order, columns.group, columns.weight}
    used |= {columns.split, columns.file, columns.text}
    used |= {f.name for f in (*schema.features, *schema.covariates)}
    return tuple(name for name in source.names if name not in used)
