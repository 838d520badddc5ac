"""Time the explanation of one set of 10,000 instances: added values and exact Shapley values.

    python benchmarks/large_set.py

Prints the lowest of five wall times per network, in seconds. Only C-Pairs has Shapley values in
closed form; for the others they would need 2^10,000 subsets.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from capnets.explain import explain, shapley_values
from capnets.models import build
from capnets.sets import Sets

INSTANCES, FEATURES, REPEATS = 10_000, 64, 5


def main() -> None:
    """Print one line per network."""
    torch.set_num_threads(1)
    x = np.random.default_rng(0).normal(size=(INSTANCES, FEATURES)).astype(np.float32)
    sets = Sets.from_arrays([x])
    for name in ("c-pairs", "c-deepset", "c-gru", "c-pool", "c-trees"):
        model = build(name, in_features=FEATURES, activation="identity", seed=0).eval()
        ways = {"added values": explain}
        if model.closed_form:
            ways["Shapley values"] = shapley_values
        for what, way in ways.items():
            seconds = []
            for _ in range(REPEATS):
                began = time.perf_counter()
                found = way(model, sets)
                seconds.append(time.perf_counter() - began)
            assert np.isfinite(found.values).all()
            print(f"{name}, {what}: {min(seconds):.3f} s", flush=True)


if __name__ == "__main__":
    main()
