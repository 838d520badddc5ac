"""Many clients at once: batches, limits on requests in progress, and a stop that loses nothing."""

import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from capnets.explain import explain
from capnets.serve.server import _listen
from capnets.sets import Sets
from services import Service

CLIENTS = 8
SLOW = {"sets": [[[float(i), 1.0, 2.0] for i in range(13)]], "method": "shapley"}

SMALL = json.dumps({"sets": [[[1.0, 2.0, 3.0]] * 4]})
JSON = {"Content-Type": "application/json"}


def until(true, *, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def test_concurrent_requests_keep_their_answers(service, runs):
    generator = np.random.default_rng(1)
    arrays = [generator.normal(size=(1 + k % 7, 3)).astype(np.float32) for k in range(64)]

    def ask(rows):
        _, answer = service.call("POST", "/v2/models/c-gru/infer", {"sets": [rows.tolist()]})
        return answer["outputs"][0]["data"][0]

    with ThreadPoolExecutor(CLIENTS) as clients:
        found = list(clients.map(ask, arrays))
    expected = explain(runs["c-gru"], Sets.from_arrays(arrays)).predictions
    assert found == pytest.approx(expected, abs=1e-5)


def test_sigterm_answers_every_request_in_progress(runs):
    with (
        Service(runs["gru"].folder, "--seconds", 300) as service,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        answers = [
            clients.submit(service.call, "POST", "/v2/models/gru/explain", SLOW)
            for _ in range(CLIENTS)
        ]
        # The request for the measurements is in progress, too.
        until(lambda: service.metric("capnets_active_requests") == CLIENTS + 1)
        assert service.stop() == 0
        assert [answer.result()[0] for answer in answers] == [200] * CLIENTS


def ask_until_closed(service, sent, answered):
    """Ask on one connection until the service closes it; note when requests were sent."""
    connection = service.connect()
    try:
        for _ in range(100_000):
            connection.request("POST", "/v2/models/gru/infer", SMALL, JSON)
            sent.append(time.monotonic())
            answer = connection.getresponse()
            answered.append((answer.status, len(json.loads(answer.read())["outputs"])))
            if answer.will_close:
                return
    except (ConnectionError, http.client.RemoteDisconnected):
        return  # closed between two requests; a partial answer raises another error
    finally:
        connection.close()


def test_sigterm_under_load_loses_no_accepted_request(runs):
    sent, answered = ([[] for _ in range(CLIENTS)] for _ in range(2))
    with (
        Service(runs["gru"].folder, "--seconds", 300) as service,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        each = zip(sent, answered, strict=True)
        done = [clients.submit(ask_until_closed, service, *own) for own in each]
        until(lambda: all(len(own) > 20 for own in answered))
        stopped = time.monotonic()
        assert service.stop() == 0
        for one in done:
            one.result()
    for times, answers in zip(sent, answered, strict=True):
        assert set(answers) == {(200, 2)}
        assert len(answers) >= sum(moment < stopped for moment in times)


def test_answers_do_not_wait_for_acknowledgements():
    """asyncio sets TCP_NODELAY on sockets of the protocol TCP only."""
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_too_many_requests(runs):
    path = "/v2/models/gru/explain"
    with (
        Service(runs["gru"].folder, "--waiting", 2, "--seconds", 300) as service,
        ThreadPoolExecutor(2) as clients,
    ):
        slow = [clients.submit(service.call, "POST", path, SLOW) for _ in range(2)]
        until(lambda: service.metric("capnets_active_requests") == 3)
        status, headers, _ = service.raw("GET", "/v2")
        assert (status, headers["retry-after"]) == (429, "1")
        assert service.raw("GET", "/v2/health/live")[0] == 200
        assert [answer.result()[0] for answer in slow] == [200, 200]
        assert service.call("GET", "/v2")[0] == 200
        assert service.stop() == 0


def test_time_limit(runs):
    with Service(runs["gru"].folder, "--seconds", 0.001) as service:
        status, answer = service.call("POST", "/v2/models/gru/explain", SLOW)
        assert status in (408, 429)
        assert "seconds" in answer["error"] or "in time" in answer["error"]
        assert service.call("GET", "/v2/health/live")[0] in (200, 408)
        assert service.stop() == 0
