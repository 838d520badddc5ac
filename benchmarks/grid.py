"""Measure training time over widths, features, set sizes, batches and threads, beside peers.

    python benchmarks/grid.py [--full] [--rounds 7] [--networks c-gru c-lstm] [--out FILE]

A cell is one network at one shape, with the encoder width that `train` chooses. It takes turns with
peers that compute the same function: plain PyTorch, torch-geometric and, beside our attention
network of its layers (`abmil`), torchmil's ABMIL. torch-geometric's Set Transformer has one layer
more, to the hidden width, so that its blocks read fewer numbers where there are many features.
A step is a prediction, the squared error and the backward pass. The ratio of a cell is our time
divided by that of the fastest peer, the smallest of all rounds: processor time with one thread,
wall time with two. Cells of two threads are left out if other processes load the machine. Lines are
appended to benchmarks/grid.jsonl; benchmarks/table.py formats the newest line of every cell. The
default takes about eight minutes; `--full` takes hours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from speed_peers import PEERS, abmil, parts
from torch import nn
from turns import record, this_run

from capnets.memory import keep_freed
from capnets.models import build
from capnets.nn.backend import explain
from capnets.nn.encoders import width_for

RECORDS = Path(__file__).with_suffix(".jsonl")
RIVALS = {
    "c-gru": ("torch GRU",),
    "gru": ("torch-geometric GRU",),
    "c-lstm": ("torch LSTM",),
    "lstm": ("torch-geometric LSTM",),
    "deepset": ("torch sum", "torch-geometric sum"),
    "attention": ("torch attention", "torch-geometric attention"),
    "abmil": ("torchmil ABMIL",),
    "set-transformer": ("torch Set Transformer", "torch-geometric Set Transformer"),
}
HIDDEN = (16, 32, 64, 128, 256, 512)
FEATURES = (3, 64, 384, 1536)
SIZES = (1, 10, 100, 1000, 10_000, 100_000)
BATCHES = (1, 3, 10, 100, 1000)
#: Steps with more instances or multiplications than this are left out, and larger sets of networks
#: whose cost grows with the square of the size.
INSTANCES, MULTIPLICATIONS, QUADRATIC = 100_000, 4e10, 1000
#: Largest load before a run in which cells of several threads are measured.
QUIET = 1.3
#: Seconds that a turn takes at least, by repeating short steps, and all rounds of a cell at most.
TURN, CELL = 0.03, 5.0


class Shape(NamedTuple):
    """The shape of a cell."""

    hidden: int
    features: int
    size: int
    batch: int
    threads: int = 1


#: The shapes of the default run: every axis is walked from a common shape, and known cliffs.
COARSE = (
    Shape(32, 64, 10, 100),
    Shape(16, 3, 10, 100),
    Shape(128, 384, 10, 100),
    Shape(256, 64, 10, 100),
    Shape(512, 384, 10, 10),
    Shape(32, 1536, 100, 10),
    Shape(32, 64, 1, 1000),
    Shape(128, 64, 1000, 1),
    Shape(256, 64, 1000, 1),
    Shape(512, 64, 300, 3),
    Shape(32, 64, 10_000, 1),
    Shape(32, 64, 10, 100, 2),
    Shape(128, 384, 10, 100, 2),
    Shape(256, 64, 1000, 1, 2),
)


def main() -> None:
    """Measure cell after cell; every cell is stored when it is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all shapes instead of some sixty")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--networks", nargs="+", default=[*RIVALS], choices=[*RIVALS])
    parser.add_argument("--out", type=Path, default=RECORDS)
    options = parser.parse_args()
    keep_freed()
    run = this_run()
    for shape in every_shape() if options.full else COARSE:
        for network in options.networks:
            if not feasible(network, shape):
                continue
            if shape.threads > 1 and run["load_before"] > QUIET:
                print(f"{network} {shape}: left out, the load was {run['load_before']}")
                continue
            line = cell(network, shape, options.rounds)
            print(
                f"{network} {shape}: {line['ratio']:.2f} of {line['best']} ({line['backend']})",
                flush=True,
            )
            record(options.out, [{**run, **line}])


def every_shape() -> Iterator[Shape]:
    """Yield all shapes whose batches are not too large."""
    for hidden, features, size, batch, threads in product(HIDDEN, FEATURES, SIZES, BATCHES, (1, 2)):
        if size * batch <= INSTANCES and hidden * hidden * size * batch <= MULTIPLICATIONS:
            yield Shape(hidden, features, size, batch, threads)


def feasible(network: str, shape: Shape) -> bool:
    """Return whether a network can read sets of this size in bounded time."""
    return network != "set-transformer" or shape.size <= QUADRATIC


def cell(network: str, shape: Shape, rounds: int) -> dict[str, Any]:
    """Measure one network and its peers in turn."""
    torch.set_num_threads(shape.threads)
    torch.manual_seed(0)
    sizes = {"hidden": shape.hidden, "width": width_for(shape.features)}
    if network == "abmil":
        ours: nn.Module = abmil(parts(shape.features, **sizes))
    else:
        ours = build(network, in_features=shape.features, seed=0, **sizes)
    models = {network: ours}
    for name in RIVALS[network]:
        try:
            models[name] = PEERS[name](parts(shape.features, **sizes))
        except ModuleNotFoundError as error:
            print(f"{name} is left out: {error.name} is not installed")
    x, y = torch.randn(shape.batch, shape.size, shape.features), torch.randn(shape.batch, 1)
    works = {name: step(model, x, y) for name, model in models.items()}
    products = work_of(network, shape)
    if products:
        works["limit"] = multiply(shape)
    found = alternate(works, rounds)
    took = {name: cpu if shape.threads == 1 else wall for name, (cpu, wall) in found.items()}
    instances = shape.batch * shape.size
    of_limit = {}
    if products:
        limit = took.pop("limit") * products / (instances * shape.hidden**2)
        of_limit = {"of_limit": round(took[network] / limit, 2)}
    best = min((name for name in took if name != network), key=took.__getitem__)
    return {
        "part": "grid",
        "network": network,
        **shape._asdict(),
        "backend": explain(ours, x).partition(": ")[2],
        "us": {name: round(1e6 * seconds / instances, 3) for name, seconds in took.items()},
        "best": best,
        "ratio": round(took[network] / took[best], 3),
        **of_limit,
    }


def work_of(network: str, shape: Shape) -> float:
    """Return the multiplications of a step in matrix products, for networks with a limit."""
    if network != "set-transformer":
        return 0.0
    hidden, features, size = shape[:3]
    first = 3 * features * hidden  # its inputs need no gradient
    linear = hidden**2 * (1 + 4 + 2)  # the first and second block, keys and values of the pooling
    pooling = 2 * hidden**2 / size + 2 * hidden
    attention = 4 * size * hidden  # scores and means of two blocks
    return shape.batch * size * (2 * first + 3 * (linear + pooling + attention))


def multiply(shape: Shape) -> Callable[[], None]:
    """Return the product of all instances with a matrix of the hidden width."""
    rows = torch.randn(shape.batch * shape.size, shape.hidden)
    matrix, out = torch.randn(shape.hidden, shape.hidden), torch.empty_like(rows)

    def do() -> None:
        torch.mm(rows, matrix, out=out)

    return do


def step(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """Return a forward and a backward pass."""

    def do() -> None:
        model.zero_grad()
        (model(x) - y).square().mean().backward()

    return do


def alternate(works: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the smallest processor and wall seconds; every round begins with another work."""
    calls, once = {}, 0.0
    for name, do in works.items():
        do()  # compiles, and fills caches
        seconds = max(_timed(do, 1)[1], 1e-6)
        calls[name] = max(1, round(TURN / seconds))
        once += calls[name] * seconds
    rounds = max(2, min(rounds, round(CELL / once)))
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    names = [*works]
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            taken[name].append(_timed(works[name], calls[name]))
    return {name: (min(c for c, _ in x), min(w for _, w in x)) for name, x in taken.items()}


def _timed(do: Callable[[], None], calls: int) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        do()
    return (time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls


if __name__ == "__main__":
    main()
