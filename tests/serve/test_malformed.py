"""Malformed requests: every one is answered, the service lives on, and memory stays flat.

`benchmarks/serve.py` sends 10,000; here a few hundred have to do.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from services import Service

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: Growth in MB that a few hundred requests may cause; buffers of 8 MB are part of it.
GROWTH = 40


@pytest.fixture
def malformed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import serve_malformed

    yield serve_malformed
    sys.modules.pop("serve_malformed")


def test_all_answered(runs, malformed):
    with Service(runs["c-gru"].folder, "--seconds", 1) as service, ThreadPoolExecutor(8) as clients:
        process = psutil.Process(service.process.pid)

        def send(seed):
            drawn = malformed.requests(200, models=["c-gru"], seed=seed)
            return list(clients.map(lambda one: malformed.ask(service.port, one), drawn))

        statuses = send(0)
        before = process.memory_info().rss
        statuses += send(1)
        assert [status for status in statuses if not 200 <= status < 500] == []
        assert process.memory_info().rss - before < GROWTH * 2**20
        assert service.call("GET", "/v2/health/live")[0] == 200
        assert service.stop() == 0
