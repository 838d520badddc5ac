"""Measure time and peak memory for five million instances, from Parquet to added values.

    python benchmarks/ingest.py [--instances 5000000] [--features 64] [--folder DIR]

Every step runs in a separate process, so that its peak memory (largest resident set, including
mapped pages) can be measured. The figures are appended to benchmarks/ingest.jsonl.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = 10  # instances per set


def make(path: Path, instances: int, features: int) -> None:
    """Write a Parquet file with scattered sets: neighbouring rows belong to different sets."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    names = [f"x{k}" for k in range(features)]
    block = 50_000
    writer = None
    for start in range(0, instances, block):
        rows = min(block, instances - start)
        x = generator.normal(size=(rows, features)).astype(np.float32)
        # Sets are complete within a block, their rows far apart.
        number = start // SIZE + np.arange(rows) % max(1, rows // SIZE)
        total = np.bincount(np.arange(rows) % max(1, rows // SIZE), weights=x[:, 0])
        columns = {"set": number, **{n: x[:, k] for k, n in enumerate(names)}}
        columns["y"] = total[np.arange(rows) % max(1, rows // SIZE)]
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def train(path: Path, run: Path) -> None:
    """Train a small run on the first rows: only its network and schema are needed."""
    import pyarrow.parquet as pq

    from capnets.estimators import SetRegressor
    from capnets.ingest import Columns

    head = next(pq.ParquetFile(path).iter_batches(50_000)).to_pandas()
    estimator = SetRegressor(
        columns=Columns(set="set", target="y"), members=1, orders=1, epochs=1, random_state=0,
        hidden=32, layers=3,
    )  # fmt: skip
    estimator.fit(head).save(run)


def ingest(path: Path, folder: Path) -> None:
    """Parquet to memory-mapped sets."""
    from capnets.ingest import Columns, read_table

    sets = read_table(path, Columns(set="set", target="y"), folder=folder).sets
    print(json.dumps({"sets": len(sets), "mapped_gb": round(sets.instances.nbytes / 1e9, 3)}))


def predict(path: Path, run: Path, out: Path) -> None:
    """Parquet to predictions and added values on disk."""
    import torch

    from capnets.estimators.predicting import predict_table
    from capnets.estimators.runs import load_estimator

    torch.set_num_threads(1)
    sets = predict_table(load_estimator(run), path, out, scratch=out.parent)
    print(json.dumps({"sets": sets, "out_gb": round(out.stat().st_size / 1e9, 3)}))


def step(name: str, *arguments: object) -> dict[str, object]:
    """Run one of the functions above in its own process and measure it."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--step", name, *map(str, arguments)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    about: dict[str, object] = {"step": name, "seconds": round(seconds, 1)}
    for line in done.stdout.splitlines():
        about |= json.loads(line)
    return about


def main() -> None:
    """Make the file, convert it, predict it, and record what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where the files go (default: temporary)")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        name, *arguments = given.step
        numbers = [int(a) if a.isdigit() else Path(a) for a in arguments]
        {"make": make, "train": train, "ingest": ingest, "predict": predict}[name](*numbers)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"peak_gb": round(peak, 3)}))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        table, run = folder / "instances.parquet", folder / "run"
        lines = [
            step("make", table, given.instances, given.features),
            step("train", table, run),
            step("ingest", table, folder / "sets"),
            step("predict", table, run, folder / "predictions.parquet"),
        ]
    for line in lines:
        line |= {
            "instances": given.instances,
            "features": given.features,
            "instances_per_second": round(given.instances / float(str(line["seconds"]))),
            "python": platform.python_version(),
        }
        if line["step"] in ("ingest", "predict"):
            print(json.dumps(line))
            with Path(__file__).with_suffix(".jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
