"""The same sweep on a Dask cluster of real processes."""

import json
import os
import signal

import pytest

from capnets.errors import InputError
from capnets.paper import cluster
from capnets.paper.runner import reproduce
from capnets.paper.workers import Progressed
from paper.processes import settled, started, until
from paper.sweep import PLAN


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
    killed = []

    def kill_once(event, outcome):
        if isinstance(event, Progressed) and not killed:
            from distributed import Client

            with Client(workers, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    outcome = reproduce(PLAN, tmp_path / "r", cluster=workers, watch=kill_once)
    assert killed
    assert outcome.complete
    assert settled(tmp_path / "r") == undisturbed


@pytest.mark.timeout(60)  # not the minutes that Dask would try
def test_an_address_that_does_not_answer_is_told_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 within"):
        reproduce(PLAN, tmp_path / "r", cluster="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no Dask scheduler answers at nonsense"):
        reproduce(PLAN, tmp_path / "r", cluster="nonsense://x")


@pytest.mark.slow
def test_a_cluster_without_workers_is_told(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 10)
    with pytest.raises(InputError, match="has no workers; start some"):
        reproduce(PLAN, tmp_path / "r", cluster=scheduler[0])
