"""Measure training and inference time per set: capnets, its peers, and the limit of the machine.

    python benchmarks/speed.py [--rounds 15]

Sets of ten 64-dimensional instances in batches of 100, 250 and 1000, one set of 10,000, and small
batches of few sets. One thread; measurements are interleaved in one process (see turns.py). A
training step is prediction, squared error, backward pass and one step of AdamW, for all networks
that of `capnets.training.adamw`. The limit is the time of the matrix products of a network at the
speed that products of the same shapes reach in the same run, with all rows at once in torch or in
blocks in numpy, whichever is faster. Lines are appended to benchmarks/speed.jsonl;
benchmarks/table.py formats the newest run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed_peers import PEERS, parts
from torch import Tensor, nn
from turns import Work, in_turn, record, this_run

from capnets.evaluate import added_values
from capnets.export import Engine
from capnets.memory import keep_freed
from capnets.models import SetModel, build
from capnets.nn import kernels
from capnets.nn.backend import use
from capnets.sets import Sets
from capnets.training.adamw import AdamW
from capnets.training.device import make_fabric
from capnets.training.fit import fit
from capnets.training.recipe import recipe

RECORDS = Path(__file__).with_suffix(".jsonl")
FEATURES, HIDDEN = 64, 32
SIZE, LARGE, SOME = 10, 10_000, 128
BATCHES = (100, 250, 1000)
FEW = (1, 8, 64)
CAPACITY = ("c-rnn", "c-lstm", "c-gru", "c-deepset")
OURS = (*CAPACITY, "c-potential", "gru", "deepset", "set-transformer")
OPTIMIZERS = {"adamw": "AdamW", "muon": "Muon"}
ON_TORCH = "c-gru on nn.GRU"
COMPILED = "compiled loops"
Line = dict[str, Any]


def main() -> None:
    """Measure part after part; a run is stored when it is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_freed()  # as `capnets train` does; it helps peers, too
    run = this_run()
    networks, lines = every_network()
    parts: list[Callable[[], list[Line]]] = [
        lambda: limits(rounds),
        lambda: of_batches(networks, rounds),
        lambda: of_fit(max(3, rounds // 3)),
        lambda: of_large_sets(max(3, rounds // 3)),
        lambda: of_few_sets(max(3, rounds // 3)),
    ]
    for part in parts:
        for line in (found := part()):
            print(*(f"{key} {value}" for key, value in line.items()), sep=", ", flush=True)
        lines += found
    record(RECORDS, [{**run, **line} for line in lines])


def every_network() -> tuple[dict[str, nn.Module], list[Line]]:
    """All networks by name, and lines that say which peers are not installed."""
    networks: dict[str, nn.Module] = {
        name: build(name, in_features=FEATURES, hidden=HIDDEN, seed=0) for name in OURS
    }
    networks[ON_TORCH] = Native(networks["c-gru"])
    networks["c-deepset, nothing compiled"] = Native(networks["c-deepset"])
    missing = []
    for name, make in PEERS.items():
        if name.startswith("torch "):  # grid.py measures these
            continue
        try:
            networks[name] = make(parts(FEATURES, HIDDEN))
        except ModuleNotFoundError as error:
            print(f"{name} is left out: {error.name} is not installed")
            missing.append({"part": "missing", "network": name, "package": error.name})
    return networks, missing


class Native(nn.Module):
    """A network of this project on torch's own modules."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return the same predictions."""
        with use("native"):
            prediction: Tensor = self.network(x)
        return prediction


def limits(rounds: int) -> list[Line]:
    """Every matrix of a capacity network multiplies every instance: its work, and the rate of it.

    The derivatives take two products more, but for the first matrix only one: nobody asks for those
    of the instances.
    """
    lines = []
    for name in CAPACITY:
        matrices = [p for p in build(name, in_features=FEATURES).parameters() if p.ndim == 2]
        works, work = {}, 0.0
        for number, matrix in enumerate(matrices):
            works |= {(number, how): one for how, one in multiplying(matrix.detach()).items()}
            work += 2e-3 * matrix.numel()  # thousands of operations per instance
        found = in_turn(works, rounds=rounds)
        took = sum(  # microseconds per instance
            min(us for (of, _), us in found.items() if of == number)
            for number in range(len(matrices))
        )
        training = took * (3 - matrices[0].numel() * 2e-3 / work)
        lines.append({
            "part": "limit", "network": name, "gigaflops": round(work / took, 1),
            "infer": round(took * SIZE, 2), "train": round(training * SIZE, 2),
            "instance": round(took, 3),
        })  # fmt: skip
    return lines


def multiplying(matrix: Tensor) -> dict[str, Work]:
    """Products with a matrix and nothing else."""
    rows = torch.randn(BATCHES[-1] * SIZE, matrix.shape[1])
    out = torch.empty(len(rows), len(matrix))
    some, turned, into = rows[:SOME].numpy(), matrix.t().contiguous().numpy(), out[:SOME].numpy()
    return {
        "at once": Work(lambda: torch.mm(rows, matrix.t(), out=out), len(rows), calls=5),
        "some": Work(lambda: np.dot(some, turned, out=into), SOME, calls=5 * len(rows) // SOME),
    }


def of_batches(networks: dict[str, nn.Module], rounds: int) -> list[Line]:
    """Training and inference of all networks on batches of all sizes, all of it in turn."""
    training, inference = {}, {}
    engines = {name: Engine(build(name, in_features=FEATURES, seed=0)) for name in OURS}
    for batch in BATCHES:
        x, y = torch.randn(batch, SIZE, FEATURES), torch.randn(batch, 1)
        sets = Sets.from_arrays(x.numpy())
        calls = BATCHES[-1] // batch
        for name, network in networks.items():
            training[name, batch] = Work(training_step(network, x, y), batch, calls)
            inference[name, batch] = Work(predicting(network, x), batch, calls)
        for name, engine in engines.items():
            inference[f"{name}, ONNX Runtime", batch] = Work(
                lambda engine=engine, sets=sets: engine.predict(sets), batch, calls
            )
    return [
        {"part": "sets", "what": what, "batch": batch, "network": name, "us": round(us, 2)}
        for what, works in (("train", training), ("infer", inference))
        for (name, batch), us in in_turn(works, rounds=rounds).items()
    ]


def training_step(network: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """One step of training."""
    optimizer = AdamW(network.parameters(), lr=1e-4)

    def step() -> None:
        error = (network(x) - y).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()

    return step


def predicting(network: nn.Module, x: Tensor) -> Callable[[], None]:
    """One prediction."""

    @torch.inference_mode()
    def predict() -> None:
        network(x)

    return predict


def of_fit(rounds: int) -> list[Line]:
    """Training as users have it: orders drawn, batches gathered, gradients clipped."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, SIZE, FEATURES)).astype(np.float32)
    sets = Sets.from_arrays(x, rng.normal(size=len(x)))
    fabric = make_fabric()
    works = {}
    for name, optimizer, batch in product(("c-gru", "c-deepset"), OPTIMIZERS, BATCHES):
        model = build(name, in_features=FEATURES, seed=0)
        how = recipe("large", epochs=1, batch_size=batch, optimizer=optimizer)
        works[f"{name}, {OPTIMIZERS[optimizer]}", batch] = Work(
            lambda model=model, how=how: fit(model, sets, recipe=how, fabric=fabric), len(sets)
        )
    return [
        {"part": "fit", "network": name, "batch": batch, "us": round(us, 2)}
        for (name, batch), us in in_turn(works, rounds=rounds).items()
    ]


def of_large_sets(rounds: int) -> list[Line]:
    """Measure added values of one large set, in microseconds per instance."""
    x = np.random.default_rng(0).normal(size=(LARGE, FEATURES)).astype(np.float32)
    sets = Sets.from_arrays([x])
    works = {}
    for name in CAPACITY:
        model = build(name, in_features=FEATURES, seed=0).eval()
        assert isinstance(model, SetModel)
        engine = Engine(model)
        works[name, "engine"] = Work(lambda engine=engine: engine.added_values(sets), LARGE)
        works[name, "torch"] = Work(lambda model=model: added_values(model, sets), LARGE)
        works[name, "nn"] = Work(lambda model=model: natively(model, sets), LARGE)
    return [
        {"part": "large", "network": name, "by": by, "us": round(us, 3)}
        for (name, by), us in in_turn(works, rounds=rounds).items()
    ]


def of_few_sets(rounds: int) -> list[Line]:
    """Training on few sets at a time, microseconds per instance."""
    works = {}
    compiled = kernels.available()
    missing = [] if compiled else [{"part": "missing", "network": COMPILED, "package": "numba"}]
    for name, sets in product((*CAPACITY[:3], "gru"), FEW):
        x, y = torch.randn(sets, 2000 // sets, FEATURES), torch.randn(sets, 1)
        step = training_step(build(name, in_features=FEATURES, hidden=16, seed=0), x, y)
        ways = {"nn": on_torch(step)}
        if compiled:
            ways = {"compiled": step, **ways}
        for by, do in ways.items():
            works[name, sets, by] = Work(do, x.shape[0] * x.shape[1])
    return missing + [
        {"part": "few", "network": name, "sets": sets, "by": by, "us": round(us, 3)}
        for (name, sets, by), us in in_turn(works, rounds=rounds).items()
    ]


def on_torch(step: Callable[[], None]) -> Callable[[], None]:
    """Return the same step by torch's own cells."""

    def do() -> None:
        with use("native"):
            step()

    return do


def natively(model: SetModel, sets: Sets) -> None:
    """Compute added values with torch's cells."""
    with use("native"):
        added_values(model, sets)


if __name__ == "__main__":
    main()
