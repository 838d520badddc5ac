"""Run `predict` over partitioned Parquet with Dask, Ray or Spark.

Each engine reads the pieces of a data set, shuffles the rows by set, so that a set is never cut in
two, and maps `predict` over the partitions. Workers load the run once. A worker that dies is
replaced, and its partition is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from capnets.batch.frames import load, predict, set_column
from capnets.batch.pieces import POSITION, Pieces, open_address, read_piece, to_frame
from capnets.errors import InputError, unknown
from capnets.files.folders import replacing

__all__ = ["ENGINES", "predict_dataset"]

#: Partitions per local worker: a small partition is lost with a worker, and memory stays low.
PER_WORKER = 4


def predict_dataset(
    data: str | Path,
    run: str | Path,
    out: str | Path,
    *,
    engine: str = "dask",
    workers: int = 2,
    cluster: str | None = None,
    partitions: int | None = None,
    force: bool = False,
) -> None:
    """Predict a Parquet data set into a folder of Parquet files.

    Rows get the columns of `predict`. A set may lie in several files: the shuffle of the engine
    brings its rows together, in the order of the files.

    Parameters
    ----------
    data
        A Parquet file or a folder of them: a path, or an address of fsspec that workers can read.
    run
        The folder of a run that was trained on a table. Workers must be able to read it.
    out
        The folder to write. A path appears when it is complete; to an address (`s3://…`) the engine
        writes its files one by one.
    engine
        `dask`, `ray` or `spark`.
    workers
        Number of local worker processes, unless `cluster` is given.
    cluster
        Address of a running cluster (`tcp://…`, `ray://…`, `spark://…`).
    partitions
        Number of partitions after the shuffle; by default four per worker or as many as there are
        pieces, whichever is more. A partition must fit into the memory of a worker.
    force
        Whether to replace an existing folder.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    load(run)
    files, path = open_address(str(out))
    if files.exists(path) and not (force and "://" not in str(out)):
        raise InputError(f"{out} exists; choose another folder or remove it")
    pieces = Pieces(str(data))
    count = partitions or max(PER_WORKER * workers, len(pieces))
    work = partial(Work, pieces, str(Path(run).absolute()), workers, cluster, count)
    try:
        if "://" in str(out):
            ENGINES[engine](work(str(out)))
            return
        with replacing(Path(out), busy=f"{out} is being written by another process") as folder:
            ENGINES[engine](work(str(folder.absolute())))
    except ImportError as error:
        raise InputError(
            f"the engine {engine} is not installed: pip install 'capnets[{engine}]' ({error})"
        ) from error


@dataclass(frozen=True)
class Work:
    """Settings of a prediction by an engine."""

    pieces: Pieces
    run: str
    workers: int
    cluster: str | None
    partitions: int
    out: str

    @cached_property
    def key(self) -> str:
        """The column that names the set of a row."""
        return set_column(load(self.run))

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the result."""
        import pyarrow as pa

        fields = to_table(predict_part(self.pieces.empty, self.run)).schema
        # Names of classes have no type while there are none.
        return pa.schema([f.with_type(pa.string()) if f.type == pa.null() else f for f in fields])


def predict_part(frame: pd.DataFrame, run: str) -> pd.DataFrame:
    """Predict a partition of whole sets in the order of the data, whatever a shuffle did to it."""
    ordered = frame.sort_values(POSITION, ignore_index=True).drop(columns=POSITION)
    found: pd.DataFrame = predict(ordered, run)
    return found


def to_table(frame: pd.DataFrame, schema: Any = None) -> Any:
    """Return a frame as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_pandas(frame, schema, preserve_index=False).replace_schema_metadata()


def _dask(work: Work) -> None:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    start: Any = LocalCluster
    connect: Any = Client
    from_map: Any = dd.from_map
    local = None
    if work.cluster is None:
        local = start(
            n_workers=work.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        )
    try:
        # Text columns stay as they are, so that both sides of the shuffle see the same type.
        quiet = dask.config.set({"dataframe.convert-string": False})
        with quiet, connect(work.cluster or local):
            pieces = work.pieces
            rows = from_map(
                read_piece, range(len(pieces)), pieces.fragments, schema=pieces.schema,
                meta=pieces.empty,
            )  # fmt: skip
            whole = rows.shuffle(on=work.key, npartitions=work.partitions)
            meta = predict_part(pieces.empty, work.run)
            found = whole.map_partitions(predict_part, work.run, meta=meta)
            found.to_parquet(work.out, write_index=False, schema=work.schema)
    finally:
        if local is not None:
            local.close()


def _ray(work: Work) -> None:
    import ray

    ray.init(
        address=work.cluster,
        num_cpus=None if work.cluster else work.workers,
        include_dashboard=None if work.cluster else False,
        log_to_driver=False,
        configure_logging=False,
    )
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        numbers = ray.data.range(len(work.pieces), override_num_blocks=len(work.pieces))
        arrow: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
        rows = numbers.map_batches(partial(_read_numbers, pieces=work.pieces), **arrow)
        whole = rows.repartition(work.partitions, keys=[work.key])
        found = whole.map_batches(partial(_predict_table, work=work), **arrow)
        found.write_parquet(work.out)
    finally:
        ray.shutdown()


def _spark(work: Work) -> None:
    import os
    import sys

    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A failed task is run again, as on a cluster; Spark's local mode would give up at once.
    local = f"local[{work.workers},{ATTEMPTS}]"
    builder = SparkSession.builder.master(work.cluster or local).appName("capnets")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        count = len(work.pieces)
        rows = session.range(0, count, 1, count).mapInArrow(
            partial(_read_batches, pieces=work.pieces),
            from_arrow_schema(to_table(work.pieces.empty).schema),
        )
        whole = rows.repartition(work.partitions, work.key).sortWithinPartitions(work.key)
        found = whole.mapInArrow(partial(_whole_sets, work=work), from_arrow_schema(work.schema))
        found.write.mode("append").parquet(work.out)
    finally:
        session.stop()


#: Attempts at a task before Spark gives up.
ATTEMPTS = 4
_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def _read_numbers(numbers: Any, *, pieces: Pieces) -> Any:
    return to_table(pd.concat([pieces.read(number) for number in numbers["id"].to_pylist()]))


def _read_batches(batches: Iterator[Any], *, pieces: Pieces) -> Iterator[Any]:
    for numbers in batches:
        for number in numbers["id"].to_pylist():
            yield from to_table(pieces.read(number)).to_batches()


def _predict_table(table: Any, *, work: Work) -> Any:
    return to_table(predict_part(to_frame(table), work.run), work.schema)


def _whole_sets(batches: Iterator[Any], *, work: Work) -> Iterator[Any]:
    """Predict the batches of a sorted partition; carry the last set over to the next batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held: list[Any] = []
    for batch in batches:
        if not len(batch):
            continue
        rows = pa.Table.from_batches([*held, batch])
        names = rows[work.key]
        # A missing name differs from all others; `predict` refuses it.
        last = pc.fill_null(pc.equal(names, names[-1]), False)
        held = rows.filter(last).to_batches()
        if len(ready := rows.filter(pc.invert(last))):
            yield from _predict_table(ready, work=work).to_batches()
    if held:
        yield from _predict_table(pa.Table.from_batches(held), work=work).to_batches()


ENGINES: dict[str, Callable[[Work], None]] = {"dask": _dask, "ray": _ray, "spark": _spark}
