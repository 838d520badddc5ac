"""Streams: microseconds per instance in ONNX Runtime and in torch, and memory over ten million.

    python benchmarks/stream.py [--instances 10000000] [--rounds 100]

One thread. Times are those of the processor (all threads of the process), so that other processes
do not count; what is compared is measured in turn, round by round, and a figure is the median of
its rounds. A line per network is appended to benchmarks/stream.jsonl.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.evaluate import added_values
from capnets.export import Engine, Stream, Streams
from capnets.models import MODELS, CapacityNetwork, build
from capnets.runs import versions
from capnets.sets import Sets

FEATURES = 64
LARGE = 10_000
Work = tuple[Callable[[], Any], int]


def main() -> None:
    """Measure every capacity network of the registry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=10_000_000, help="of the longest stream")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "microseconds per instance:\n"
        f"{'network':12}{'one':>8}{'in torch':>10}{'chunks of 64':>14}{'of 1000':>9}"
        f"{'1000 streams':>14}{'set of 10,000':>15}{'in torch':>10}"
    )
    for name in MODELS:
        model = build(name, in_features=FEATURES, seed=0).eval()
        if isinstance(model, CapacityNetwork):
            figures = times(model, given.rounds)
            print(
                f"{name:12}{figures['one']:8.1f}{figures['one_torch']:10.1f}"
                f"{figures['chunks_of_64']:14.2f}{figures['chunks_of_1000']:9.2f}"
                f"{figures['streams_1000']:14.2f}{figures['large_set']:15.2f}"
                f"{figures['large_set_torch']:10.2f}",
                flush=True,
            )
            record({"network": name, "unit": "us per instance", **figures})
    figures = endless(given.instances)
    print(
        f"\none c-gru stream of {figures['instances']:,} instances: {figures['seconds']} s, "
        f"peak memory {figures['peak_mb_after_first']} MB after the first hundred thousand, "
        f"{figures['peak_mb_at_end']} MB at the end"
    )
    record({"network": "c-gru", **figures})


def times(model: CapacityNetwork, rounds: int) -> dict[str, float]:
    """Microseconds per instance of everything that is compared."""
    x = np.random.default_rng(0).normal(size=(LARGE, FEATURES)).astype(np.float32)
    engine, sets = Engine(model), Sets.from_arrays([x])
    stream, streams = Stream(engine), Streams(engine, count=1000)
    instance, state = torch.from_numpy(x[:1]), model.initial_state(1)

    @torch.inference_mode()
    def torch_step() -> None:
        model.step(instance, state)

    figures = measure(
        {
            "one": (lambda: stream.push(x[0]), 1),
            "one_torch": (torch_step, 1),
            "chunks_of_64": (lambda: stream.push(x[:64]), 64),
            "chunks_of_1000": (lambda: stream.push(x[:1000]), 1000),
            "streams_1000": (lambda: streams.push(x[:1000]), 1000),
        },
        rounds,
    )
    return figures | measure(
        {
            "large_set": (lambda: engine.added_values(sets), LARGE),
            "large_set_torch": (lambda: added_values(model, sets), LARGE),
        },
        max(5, rounds // 10),
    )


def measure(works: dict[str, Work], rounds: int) -> dict[str, float]:
    """The works in turn, every round; microseconds per instance."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for round_ in range(rounds + 3):
        for name, (work, instances) in works.items():
            repeat = max(1, min(200, 4000 // instances))  # a stream that flows
            began = time.process_time()
            for _ in range(repeat):
                work()
            if round_ >= 3:  # the first ones warm up
                taken[name].append((time.process_time() - began) / repeat / instances * 1e6)
    return {name: round(float(np.median(each)), 2) for name, each in taken.items()}


def endless(instances: int) -> dict[str, Any]:
    """A stream of many instances, in chunks and one by one, and what memory it takes."""
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
    """The largest resident set so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def record(line: dict[str, Any]) -> None:
    """Append a line to the results."""
    with Path(__file__).with_suffix(".jsonl").open("a") as file:
        file.write(json.dumps({**line, "versions": versions()}) + "\n")


if __name__ == "__main__":
    main()
