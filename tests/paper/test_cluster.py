"""The same sweep on a Dask cluster of real processes."""

import gc
import json
import os
import signal
import socket
import threading
import time
import warnings
from contextlib import closing, suppress
from http.server import HTTPServer, SimpleHTTPRequestHandler
from threading import Thread

import pytest

from capnets.errors import InputError
from capnets.paper import cluster
from capnets.paper.cluster import ClusterWorkers
from capnets.paper.pool import EpochDone
from capnets.paper.scheduler import reproduce
from paper.processes import settled, started, until
from paper.sweep import PLAN


@pytest.fixture(autouse=True)
def leftovers():
    """Dask leaves connections open that it gave up on; a later test must not be blamed for them."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        with suppress(RuntimeError):  # it may not have started yet
            thread.join(timeout=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler without workers, and the file that tells it to them."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    with started("-m", "distributed.cli.dask_scheduler", *options) as process:
        until(file.exists, process)
        yield json.loads(file.read_text())["address"], file


@pytest.fixture
def workers(scheduler):
    """The address of a scheduler with two workers, which it starts again when they are killed."""
    address, file = scheduler
    options = ["--nworkers", "2", "--nthreads", "1", "--no-dashboard", "--scheduler-file", file]
    with started("-m", "distributed.cli.dask_worker", *options):
        yield address


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster_changes_nothing(undisturbed, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 120)
    killed, count = [], set()

    def kill_once(event, outcome):
        count.add(outcome.workers)
        if isinstance(event, EpochDone) and not killed:
            from distributed import Client

            with Client(workers, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    outcome = reproduce(PLAN, tmp_path / "r", cluster=workers, watch=kill_once)
    assert killed
    assert max(count) == 2, "those of the cluster"
    assert outcome.complete
    assert settled(tmp_path / "r") == undisturbed


@pytest.mark.timeout(60)  # not the minutes that Dask would try
def test_an_address_that_does_not_answer_is_told_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 within"):
        reproduce(PLAN, tmp_path / "r", cluster="tcp://127.0.0.1:9")


@pytest.fixture
def silent():
    """The address of something that accepts every connection and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def talkative():
    """The address of something that says other words than Dask at once, as mail servers do."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet():
            while True:
                try:
                    with server.accept()[0] as connection:
                        connection.sendall(b"220 mail.example.org ESMTP ready\r\n" * 9)
                except OSError:
                    return

        Thread(target=greet, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def website():
    """The address of a web server."""
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("there", ["silent", "talkative", "website"])
@pytest.mark.parametrize("protocol", ["tcp", "ws", "tls"])
def test_what_is_not_dask_is_told_within_seconds(there, protocol, request, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    address = request.getfixturevalue(there).replace("tcp", protocol)
    began = time.monotonic()
    with pytest.raises(InputError, match=f"no Dask scheduler answers at {address} within 1 s"):
        ClusterWorkers(address, runs=tmp_path)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "address",
    ["", "garbage", "nonsense://x:1", "http://x y", "tcp://x y:8786", "tcp://x", "tcp://x:port",
     "tcp://:8786", "tcp://[::1:8786", "tcp://x:99999", "inproc://10.0.0.1/1/1"],
)  # fmt: skip
def test_what_is_no_address_is_not_tried(address, tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("tried"))
    with pytest.raises(InputError, match=r"is not the address of a Dask scheduler.* tcp://10\.0"):
        ClusterWorkers(address, runs=tmp_path)


@pytest.mark.slow
def test_a_cluster_without_workers_is_told(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 10)
    with pytest.raises(InputError, match="has no workers; start some"):
        reproduce(PLAN, tmp_path / "r", cluster=scheduler[0])
