"""Measure streams: time per instance in ONNX Runtime and torch, and memory over ten million.

    python benchmarks/stream.py [--instances 10000000] [--rounds 30]

One thread; measurements are interleaved (see turns.py). Lines are appended to
benchmarks/stream.jsonl; benchmarks/table.py formats the newest run.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from turns import Work, in_turn, record, this_run

from capnets.export import Engine, Stream, Streams
from capnets.models import MODELS, build
from capnets.models.base import SteppingModel

RECORDS = Path(__file__).with_suffix(".jsonl")
FEATURES = 64


def main() -> None:
    """Measure every capacity network of the registry; a run is stored when it is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=10_000_000, help="of the longest stream")
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run = this_run()
    # First of all, because a peak never falls again.
    lines = [{"part": "endless", "network": "c-gru", **endless(given.instances)}]
    print(lines[0], flush=True)
    for name in MODELS:
        model = build(name, in_features=FEATURES, seed=0).eval()
        if isinstance(model, SteppingModel):
            for how, us in in_turn(works(model), rounds=given.rounds).items():
                lines.append({"part": "stream", "network": name, "how": how, "us": round(us, 2)})
                print(f"{name}, {how}: {us:.2f} us per instance", flush=True)
    record(RECORDS, [{**run, **line} for line in lines])


def works(model: SteppingModel) -> dict[str, Work]:
    """Everything that is compared."""
    x = np.random.default_rng(0).normal(size=(1000, FEATURES)).astype(np.float32)
    engine = Engine(model)
    stream, streams = Stream(engine), Streams(engine, count=1000)
    instance, state = torch.from_numpy(x[:1]), model.initial_state(1)

    @torch.inference_mode()
    def torch_step() -> None:
        model.step(instance, state)

    return {
        "one": Work(lambda: stream.push(x[0]), 1, calls=200),
        "one in torch": Work(torch_step, 1, calls=20),
        "chunks of 64": Work(lambda: stream.push(x[:64]), 64, calls=50),
        "chunks of 1000": Work(lambda: stream.push(x), 1000, calls=4),
        "1000 streams": Work(lambda: streams.push(x), 1000, calls=4),
    }


def endless(instances: int) -> dict[str, Any]:
    """Measure time and peak memory of a long stream, in chunks and one by one."""
    stream = Stream(build("c-gru", in_features=FEATURES, seed=0))
    chunk = np.random.default_rng(1).normal(size=(10_000, FEATURES)).astype(np.float32)
    began, first = time.process_time(), 0
    while len(stream) < instances:
        stream.push(chunk)
        for x in chunk[:10]:
            stream.push(x)
        if not first and len(stream) >= 100_000:
            first = peak()
    return {
        "instances": len(stream),
        "seconds": round(time.process_time() - began, 1),
        "peak_mb_after_first": first,
        "peak_mb_at_end": peak(),
    }


def peak() -> int:
    """Return the largest resident set so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
