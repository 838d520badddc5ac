"""Compare the wall time of `capnets reproduce` with one and with two workers.

    python benchmarks/sweep.py [--rounds 3] [--sets 10000]

The main table for four networks and three tasks, on scikit-learn's digits. Runs with one and two
workers alternate, each in an empty folder and including the start of the workers; a figure is the
median over rounds. Run it on an idle machine (the load is recorded). One line is appended to
benchmarks/sweep.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from capnets.paper.plan import Plan, make_plan
from capnets.paper.scales import find_scale
from capnets.paper.scheduler import reproduce
from capnets.runs import versions


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sets", type=int, default=10_000, help="to train with")
    given = parser.parse_args()
    scale = replace(find_scale("smoke"), sets=given.sets, epochs=5)
    plan = make_plan(
        ["main-mean"],
        scale=scale,
        models=["gru", "c-gru", "c-lstm", "deepset"],
        tasks=["US", "WTri", "TriC"],
    )
    load = os.getloadavg()[0]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(given.rounds):
        for jobs in seconds:
            seconds[jobs].append(timed(plan, jobs))
            print(f"round {number + 1}, {jobs} workers: {seconds[jobs][-1]:.1f} s", flush=True)
    one, two = (statistics.median(times) for times in seconds.values())
    print(f"\n{len(plan.choices)} runs: {one:.1f} s with one worker, {two:.1f} s with two: "
          f"{one / two:.2f} times as fast")  # fmt: skip
    line = {
        "runs": len(plan.choices),
        "sets": given.sets,
        "rounds": given.rounds,
        "one_worker_s": round(one, 1),
        "two_workers_s": round(two, 1),
        "times": round(one / two, 2),
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        "versions": versions(),
    }
    with Path(__file__).with_suffix(".jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def timed(plan: Plan, jobs: int) -> float:
    """Seconds of wall time for a plan in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        assert reproduce(plan, Path(folder) / "results", jobs=jobs).complete
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
