"""Measure the service under load beside plain FastAPI + torch, and send 10,000 malformed requests.

    python benchmarks/serve.py [--rounds 10] [--seconds 0.5] [--malformed 10000]

Both servers run at the same time on the loopback interface, and the client asks them in turns, so
that other processes slow both down. A request is one set of ten instances of 64 features as JSON;
the answer has the prediction and all added values. Figures are medians over rounds. Processor time
per request hardly depends on other processes. Lines are appended to benchmarks/serve.jsonl.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from serve_client import Load, measure
from serve_malformed import CLOSE, ask, requests
from turns import record, this_run

from capnets.models import ModelSpec
from capnets.runs import Run, RunConfig
from capnets.training.recipe import Recipe

HERE = Path(__file__).parent
RECORDS = Path(__file__).with_suffix(".jsonl")
NETWORK = "c-gru"
CLIENTS = (1, 16, 64)
FEATURES, SIZE = 64, 10


@dataclass(frozen=True)
class Server:
    """A server that answers one request again and again."""

    name: str
    process: psutil.Process
    port: int
    path: str
    body: bytes

    def load(self, clients: int, seconds: float) -> tuple[Load, float]:
        """Return latencies, and microseconds of the server's processor time per request."""
        before = sum(self.process.cpu_times()[:2])
        found = measure(self.port, self.path, self.body, clients=clients, seconds=seconds)
        asked = found.requests + clients  # every connection asks once before time counts
        return found, (sum(self.process.cpu_times()[:2]) - before) / asked * 1e6


def main() -> None:
    """Measure everything; a run is stored when it is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--malformed", type=int, default=10_000)
    given = parser.parse_args()
    run = this_run()
    with tempfile.TemporaryDirectory() as folder:
        path = make_run(Path(folder) / NETWORK)
        with both(path) as servers:
            lines = [
                line
                for clients in CLIENTS
                for line in compare(servers, clients, rounds=given.rounds, seconds=given.seconds)
            ]
        lines.append(malformed(path, given.malformed))
        print(lines[-1], flush=True)
    record(RECORDS, [{**run, **line} for line in lines])


def make_run(folder: Path) -> Path:
    """Write a run with random weights, which cost as much as trained ones."""
    spec = ModelSpec(NETWORK, in_features=FEATURES)
    run = Run.create(folder, RunConfig(spec, Recipe(), 0, {}))
    run.write_history([])
    run.write_weights(spec.build(seed=0))
    run.finish({})
    return folder


@contextlib.contextmanager
def both(folder: Path) -> Iterator[list[Server]]:
    """Start the service and its peer; the peer is listed with both kinds of functions."""
    x = np.random.default_rng(0).normal(size=(SIZE, FEATURES)).astype(np.float32)
    rows = [[float(f"{v:.6g}") for v in row] for row in x]
    sets, plain = (json.dumps(body).encode() for body in ({"sets": [rows]}, {"instances": rows}))
    free = _free_port()
    with (
        service(folder) as (own, port),
        _started([str(HERE / "serve_plain.py"), str(folder), str(free)]) as peer,
    ):
        _until_open(free)
        about = psutil.Process(own.pid), psutil.Process(peer.pid)
        yield [
            Server("capnets serve", about[0], port, f"/v2/models/{NETWORK}/infer", sets),
            Server("FastAPI + torch, def", about[1], free, "/def", plain),
            Server("FastAPI + torch, async def", about[1], free, "/async", plain),
        ]


def compare(
    servers: list[Server], clients: int, *, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """Ask all servers in turns, after a warm-up round."""
    found: dict[str, list[tuple[Load, float]]] = collections.defaultdict(list)
    for number in range(rounds + 1):
        for server in servers:
            turn = server.load(clients, seconds)
            if number:
                found[server.name].append(turn)
    lines = []
    for server in servers:
        loads, costs = zip(*found[server.name], strict=True)
        line = {
            "part": "load",
            "server": server.name,
            "clients": clients,
            "per_second": round(statistics.median(one.per_second for one in loads)),
            "p50_ms": round(statistics.median(one.p50_ms for one in loads), 2),
            "p99_ms": round(statistics.median(one.p99_ms for one in loads), 2),
            "server_us": round(statistics.median(costs)),
            "memory_mb": server.process.memory_info().rss // 2**20,
            "failed": sum(one.failed for one in loads),
        }
        print(line, flush=True)
        lines.append(line)
    return lines


def malformed(folder: Path, count: int) -> dict[str, Any]:
    """Send malformed requests; return the statuses of the answers and the memory of the service."""
    statuses: collections.Counter[int] = collections.Counter()
    memory = []
    # Bodies that are shorter than announced are answered after `--seconds`.
    with service(folder, "--seconds", "1") as (process, port), ThreadPoolExecutor(32) as clients:
        about = psutil.Process(process.pid)
        every = list(requests(count, models=[NETWORK]))
        for part in range(5):
            statuses.update(clients.map(lambda request: ask(port, request), every[part::5]))
            memory.append(about.memory_info().rss // 2**20)
        alive = ask(port, b"GET /v2/health/live HTTP/1.1\r\n" + CLOSE.encode()) == 200
        process.terminate()
        stopped = process.wait(60)
    return {
        "part": "malformed",
        "requests": count,
        "statuses": {str(status): statuses[status] for status in sorted(statuses)},
        "memory_mb": memory,
        "alive": alive,
        "exit": stopped,
    }


@contextlib.contextmanager
def service(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start `capnets serve` on a free port."""
    with _started(["-m", "capnets", "serve", "--port", "0", str(folder), *arguments]) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split(" (")[0]
        yield process, int(address.rpartition(":")[2])


@contextlib.contextmanager
def _started(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _until_open(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
