"""Write predictions and added values of a table, one row per instance.

Sets are read, predicted and written in pieces. Features and results are never held as a whole; only
the order of the rows is, at about 50 bytes per row.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.documents import opened
from capnets.estimators.inputs import read
from capnets.evaluate import baselines
from capnets.files import writing
from capnets.ingest import FeatureFolder, read_table
from capnets.learn.averaging import mean_added_values
from capnets.progress import Progress
from capnets.sets import Array, Sets
from capnets.sets.mapped import release
from capnets.sets.orders import Orders
from capnets.sets.ragged import owners_of, positions_of

__all__ = ["predict_table", "prediction_columns"]

#: Instances that are in memory at once, and numbers from which fewer are.
INSTANCES, NUMBERS = 200_000, 2**25


def predict_table(
    estimator: SetEstimator,
    table: Any,
    out: str | Path,
    *,
    scratch: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write predictions to a Parquet or CSV file; return the number of sets.

    One row per instance, set after set in the order in which they are read: `set`, `row` (in the
    table, from 0; if rows are documents, the number of the sentence; for feature folders the number
    of the instance in its set), `x` and `y` if files have coordinates, `sentence` if the table has
    a text column, `prediction` of its set, and `added_value`. Over a set added values sum to the
    prediction minus the `baseline`, a column that only networks with a baseline have; with
    covariates, the baseline is that of the set. For classes
    there is a `probability_…` of each, and added values sum to the logit of the class in their
    name, `added_value_…` (of two classes, of the second). With several targets every column has the
    name of one.

    Parameters
    ----------
    estimator
        A fitted estimator.
    table
        Table to predict; labels are not needed.
    out
        File to write, .parquet or .csv; it appears when it is complete.
    scratch
        Folder for the instances during prediction; by default a temporary one.
    force
        Whether to replace an existing file.
    progress
        Called with the number of sets done and in all.
    """
    out = Path(out)
    if out.suffix not in WRITERS:
        raise InputError(f"{out}: predictions are written as {' or '.join(WRITERS)}")
    if out.exists() and not force:
        raise InputError(
            f"{out} exists; choose another file, or replace it by force=True (--force)"
        )
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        pieces, total = _pieces(estimator, table, Path(folder) / "sets")
        sentences = _sentences(estimator, table)
        with writing(out) as path:
            write = WRITERS[out.suffix]
            _write(
                estimator, pieces, sentences, path, write,
                lambda done: progress and progress(done, total),
            )  # fmt: skip
    return total


def _write(
    estimator: SetEstimator,
    pieces: Iterator[tuple[Sets, Array]],
    sentences: Any,
    path: Path,
    make_writer: Callable[[Path, Any], Any],
    progress: Callable[[int], Any],
) -> None:
    import pyarrow as pa

    writer = None
    done = 0
    try:
        for sets, rows in pieces:
            ids = np.arange(len(sets)) + done if sets.ids is None else np.asarray(sets.ids)
            named = {"set": ids[owners_of(sets.sizes)], "row": rows}
            if sets.coords is not None:
                named |= {"x": sets.coords[:, 0], "y": sets.coords[:, 1]}
            columns = pa.table(named | prediction_columns(estimator, sets))
            if sentences is not None:
                columns = columns.add_column(2, "sentence", sentences.take(pa.array(rows)))
            writer = writer or make_writer(path, columns.schema)
            writer.write_table(columns)
            done += len(sets)
            progress(done)
    finally:
        if writer is not None:
            writer.close()


def _parquet(path: Path, schema: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, schema)


def _csv(path: Path, schema: Any) -> Any:
    import pyarrow.csv

    return pyarrow.csv.CSVWriter(path, schema)


WRITERS = {".parquet": _parquet, ".csv": _csv}


def _pieces(
    estimator: SetEstimator, table: Any, folder: Path
) -> tuple[Iterator[tuple[Sets, Array]], int]:
    """Return pieces of the sets with their rows in the table, and the number of sets."""
    folder_of_files = isinstance(table, FeatureFolder)
    mapped = estimator.schema_ is not None and not folder_of_files
    if not mapped:
        whole = read(table, estimator.schema_).sets
        if whole.in_features != estimator.n_features_in_:
            raise InputError(
                f"{table} has {whole.in_features} features, but the run was trained with "
                f"{estimator.n_features_in_}"
            )
    else:
        assert estimator.schema_ is not None
        source = opened(table, estimator.schema_)
        whole = read_table(source, estimator.schema_, labels=False, folder=folder).sets
    estimator.check_sizes(whole)
    cuts = _cuts(np.asarray(whole.offsets), math.prod(whole.feature_shape))

    def parts() -> Iterator[tuple[Sets, Array]]:
        for a, b in pairwise(cuts):
            # Mapped anew for every piece, so that the memory of the last one is released.
            part = (Sets.load(folder) if mapped else whole)[int(a) : int(b)]
            rows = np.array(part.index)
            coords = None if part.coords is None else part.coords[rows]
            held = replace(
                part, instances=np.array(part.instances[rows]), index=np.arange(len(rows)),
                coords=coords,
            )  # fmt: skip
            release(part.instances)
            yield held, positions_of(part.sizes) if folder_of_files else rows

    return parts(), len(whole)


def _sentences(estimator: SetEstimator, table: Any) -> Any:
    """Return the sentences of a table with a text column, one per instance; else None."""
    import pyarrow as pa

    schema = estimator.schema_
    text = None if schema is None else schema.columns.text
    if schema is None or text is None:
        return None
    batches = opened(table, schema).with_text([text]).batches([text])
    return pa.chunked_array([batch.column(0) for batch in batches])


def _cuts(offsets: Array, width: int) -> Array:
    """Return cuts such that a piece has few instances, but at least one set."""
    marks = np.arange(0, offsets[-1], max(1, min(INSTANCES, NUMBERS // max(1, width))))
    cuts = np.unique(np.searchsorted(offsets, marks, "right") - 1)
    return np.append(cuts, len(offsets) - 1)


def prediction_columns(estimator: SetEstimator, sets: Sets) -> dict[str, Array]:
    """Return predictions, probabilities and added values, one row per instance; see above."""
    orders = Orders.averaging(estimator.n_orders_)
    values = mean_added_values(estimator.model_, sets, orders)
    owners = owners_of(sets.sizes)
    # Differences between the predictions of prefixes sum to the prediction too, so this holds for
    # networks that are not additive by construction.
    level = baselines(estimator.model_, sets)
    raw = level + np.add.reduceat(values, sets.offsets[:-1], axis=0)
    columns: dict[str, Array] = {}
    names = [f"_{n}" for n in estimator.output_names()]
    target = estimator.target_
    decided = target.decide(raw).reshape(len(sets), -1)[owners]
    if not target.classifies:
        names = names if len(names) > 1 else [""]
        decided = decided.astype(np.float32)
    single = decided.shape[1] == 1 and target.kind != "labels"
    for k, name in enumerate([""] if single else names):
        column = decided[:, k]
        columns[f"prediction{name}"] = column.astype(np.int8) if target.kind == "labels" else column
    if target.classifies:
        shares = target.probabilities(raw)
        classes = [f"_{c}" for c in target.classes] or names
        for k, name in enumerate(classes):
            columns[f"probability{name}"] = shares[owners, k].astype(np.float32)
    for k, name in enumerate(names):
        if estimator.model_.covariates or level.any():
            columns[f"baseline{name}"] = level[owners, k].astype(np.float32)
        columns[f"added_value{name}"] = values[:, k].astype(np.float32)
    return columns
