"""Run `predict` over partitioned Parquet with Dask, Ray or Spark.

Each engine shuffles the rows by set, so that a set is never cut in two, and maps `predict` over the
partitions. Workers load the run once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from capnets.batch.frames import load, predict, set_column
from capnets.errors import InputError, unknown

__all__ = ["ENGINES", "predict_dataset"]


def predict_dataset(
    data: str | Path,
    run: str | Path,
    out: str | Path,
    *,
    engine: str = "dask",
    workers: int = 2,
    cluster: str | None = None,
    partitions: int | None = None,
) -> Path:
    """Predict a Parquet data set into a folder of Parquet files.

    Parameters
    ----------
    data
        A Parquet file, a folder of them, or an address that the engine can read.
    run
        The folder of a run that was trained on a table. Workers must be able to read it.
    out
        The folder to write. It appears when it is complete.
    engine
        `dask`, `ray` or `spark`.
    workers
        Number of local worker processes, unless `cluster` is given.
    cluster
        Address of a running cluster (`tcp://…`, `ray://…`, `spark://…`).
    partitions
        Number of partitions after the shuffle; by default four per worker. A partition must fit
        into the memory of a worker.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    out = Path(out)
    if out.exists():
        raise InputError(f"{out} exists; choose another folder or remove it")
    estimator = load(run)
    hidden = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    try:
        ENGINES[engine](
            str(data),
            str(Path(run).absolute()),
            str(hidden.absolute()),
            key=set_column(estimator),
            workers=workers,
            cluster=cluster,
            partitions=partitions or 4 * workers,
        )
        hidden.rename(out)
    finally:
        _remove(hidden)
    return out


def _dask(
    data: str, run: str, out: str, *, key: str, workers: int, cluster: str | None, partitions: int
) -> None:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    start: Any = LocalCluster
    connect: Any = Client
    local = None if cluster else start(n_workers=workers, threads_per_worker=1, **_QUIET)
    try:
        # Text columns stay Python objects, so that both sides of the shuffle see the same type.
        with dask.config.set({"dataframe.convert-string": False}), connect(cluster or local):
            frame = dd.read_parquet(data)
            meta = predict(frame._meta_nonempty.iloc[:0], run)
            shuffled = frame.shuffle(on=key, npartitions=partitions)
            shuffled.map_partitions(predict, run, meta=meta).to_parquet(out, write_index=False)
    finally:
        if local is not None:
            local.close()


_QUIET: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}


def _ray(
    data: str, run: str, out: str, *, key: str, workers: int, cluster: str | None, partitions: int
) -> None:
    import ray

    ray.init(address=cluster, num_cpus=None if cluster else workers, **_QUIET_RAY)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = ray.data.read_parquet(data).repartition(partitions, keys=[key])
        mapped = rows.map_batches(
            partial(predict, run=run), batch_size=None, batch_format="pandas", num_cpus=1
        )
        mapped.write_parquet(out)
    finally:
        ray.shutdown()


_QUIET_RAY: dict[str, Any] = {
    "include_dashboard": False,
    "log_to_driver": False,
    "configure_logging": False,
}


def _spark(
    data: str, run: str, out: str, *, key: str, workers: int, cluster: str | None, partitions: int
) -> None:
    import os
    import sys

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(cluster or f"local[{workers}]").appName("capnets")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        rows = session.read.parquet(data).repartition(partitions, key).sortWithinPartitions(key)
        # Spark needs the types of the result: predict one row, whose numbers do not matter.
        schema = session.createDataFrame(predict(rows.limit(1).toPandas(), run)).schema
        rows.mapInPandas(partial(_whole_sets, run=run, key=key), schema).write.parquet(out)
    finally:
        session.stop()


_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def _whole_sets(batches: Iterator[pd.DataFrame], *, run: str, key: str) -> Iterator[pd.DataFrame]:
    """Predict the batches of a sorted partition; carry the last set over to the next batch."""
    held: pd.DataFrame | None = None
    for batch in batches:
        rows = batch if held is None else pd.concat([held, batch], ignore_index=True)
        last = rows[key] == rows[key].iloc[-1]
        held, ready = rows[last], rows[~last]
        if len(ready):
            yield predict(ready, run)
    if held is not None and len(held):
        yield predict(held, run)


def _remove(folder: Path) -> None:
    import shutil

    if folder.exists():
        shutil.rmtree(folder)


ENGINES: dict[str, Callable[..., None]] = {"dask": _dask, "ray": _ray, "spark": _spark}
