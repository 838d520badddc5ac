"""Measure training on two processes and batch prediction, and extrapolate to 10^9 instances.

    python benchmarks/many_machines.py [--instances 200000] [--rounds 3]

Sets of ten instances with 16 features in Parquet. Training: wall seconds of an epoch of a C-GRU
with `capnets train --devices 1` and `--devices 2`, in turn. Prediction: processor seconds of
`capnets.batch.predict` in one process, bytes read and written. One line is appended to
benchmarks/many_machines.jsonl, and the calculation in docs/how-to/many-machines.md is updated.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from turns import newest, record, this_run

from capnets.batch import predict
from capnets.files import write_text

RECORDS = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "many-machines.md"
SIZE, FEATURES, EPOCHS = 10, 16, 3
#: The instances of the calculation, and the cores and hours of its machines.
MANY, CORES, HOURS = 10**9, 16, 1


def main() -> None:
    """Measure, record, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        line = {**this_run(), **measure(Path(scratch), options.instances, options.rounds)}
    record(RECORDS, [line])
    print(json.dumps(line, indent=2))
    write_page()


def measure(folder: Path, instances: int, rounds: int) -> dict[str, Any]:
    """Return bytes and seconds per instance."""
    frame = draw(instances)
    frame.to_parquet(folder / "rows.parquet", index=False)
    epochs: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for devices, seconds in epochs.items():
            seconds.append(epoch_seconds(folder, devices))
    run = folder / "run-1"
    predict(frame[: 10 * SIZE], run)  # loads the run and its kernels
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        found = predict(frame, run)
        taken.append(time.process_time() - began)
    found.to_parquet(folder / "out.parquet", index=False)
    return {
        "part": "many machines",
        "instances": instances,
        "features": FEATURES,
        "bytes_in": (folder / "rows.parquet").stat().st_size / instances,
        "bytes_out": (folder / "out.parquet").stat().st_size / instances,
        "train_us": {n: 1e6 * statistics.median(s) / instances for n, s in epochs.items()},
        "predict_us": 1e6 * statistics.median(taken) / instances,
    }


def draw(instances: int) -> pd.DataFrame:
    """Return random sets; the label is the sum of the positive parts of one feature."""
    rng = np.random.default_rng(0)
    columns = {f"x{k}": rng.normal(size=instances).astype(np.float32) for k in range(FEATURES)}
    frame = pd.DataFrame({"set": np.arange(instances) // SIZE, **columns})
    return frame.assign(y=frame.x0.clip(lower=0).groupby(frame.set).transform("sum"))


def epoch_seconds(folder: Path, devices: int) -> float:
    """Train by the command line; return the median seconds of an epoch after the first."""
    run = folder / f"run-{devices}"
    words = [
        "train",
        folder / "rows.parquet",
        "--set-column",
        "set",
        "--target",
        "y",
        "-m",
        "c-gru",
    ]
    words += ["--epochs", EPOCHS, "--members", 1, "--devices", devices, "-o", run, "--force"]
    subprocess.run(
        [sys.executable, "-m", "capnets", *map(str, words)], check=True, capture_output=True
    )
    lines = (run / "history.jsonl").read_text().splitlines()
    return statistics.median(json.loads(line)["seconds"] for line in lines[1:])


def calculation(line: dict[str, Any]) -> list[str]:
    """Return the table for many instances, computed from a record."""
    read, written = (MANY * line[key] / 1e9 for key in ("bytes_in", "bytes_out"))
    seconds = MANY * line["predict_us"] / 1e6
    machines = math.ceil(seconds / (CORES * HOURS * 3600))
    one, two = (line["train_us"][n] for n in ("1", "2"))
    return [
        f"| for {MANY:,} instances of {line['features']} features | |",
        "|---|---|",
        f"| Parquet to read | {read:,.0f} GB ({line['bytes_in']:.0f} bytes an instance) |",
        f"| predictions to write | {written:,.0f} GB ({line['bytes_out']:.0f} bytes an instance) |",
        f"| prediction, one core | {seconds / 3600:,.1f} hours "
        f"({line['predict_us']:.1f} µs an instance) |",
        f"| machines with {CORES} cores to finish in {HOURS} hour | {machines} |",
        f"| an epoch of training, one process | {MANY * one / 3.6e9:,.1f} hours "
        f"({one:.1f} µs an instance) |",
        f"| speed-up by a second process | {one / two:.2f} |",
    ]


def write_page() -> None:
    """Write the calculation between the markers of the page."""
    [line] = newest(RECORDS)
    text = PAGE.read_text()
    before, mark, rest = text.partition("<!-- calculation -->\n")
    _, end, after = rest.partition("<!-- end -->")
    load = f"load before {line['load_before']} on {line['cores']} cores"
    about = f"Measured {line['began'][:10]}, {load}."
    table = "\n".join([*calculation(json.loads(json.dumps(line))), "", about])
    write_text(PAGE, f"{before}{mark}{table}\n{end}{after}")


if __name__ == "__main__":
    main()
