"""Wrong, large and unauthorised requests get an error status and a sentence, never 500."""

import json
import socket

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.serve import Limits, serve
from services import Service, tensors

INFER = "/v2/models/c-gru/infer"
KINDS = ["infer", "explain", "select", "streams/x"]

numbers = st.one_of(
    st.integers(-(10**30), 10**30), st.floats(), st.booleans(), st.none(), st.text(max_size=3)
)
nested = st.recursive(numbers, lambda inner: st.lists(inner, max_size=4), max_leaves=12)
tensor = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["instances", "mask", "sizes", "x", 3]),
        "datatype": st.sampled_from(["FP32", "BOOL", "INT64", "FP8"]),
        "shape": st.lists(st.sampled_from([0, 1, 2, 3, -1, 2**31, 10**12]), max_size=4),
        "data": st.one_of(st.lists(numbers, max_size=6), nested),
    },
)
body = st.fixed_dictionaries(
    {},
    optional={
        "inputs": st.one_of(st.lists(tensor, max_size=3), nested),
        "sets": st.one_of(
            nested, st.lists(st.lists(st.lists(st.floats(), min_size=3, max_size=3)))
        ),
        "instances": nested,
        "orders": numbers,
        "k": st.one_of(st.integers(-1, 4), numbers),
        "seed": numbers,
        "method": st.sampled_from(["added", "shapley", "greedy", "optimum", 3]),
        "output": st.one_of(st.integers(-2, 3), numbers),
        "id": st.text(max_size=3),
    },
)


def check(service, path, data):
    headers = {"Content-Type": "application/json"}
    status, _, answer = service.raw("POST", path, data, headers)
    assert status < 500, (path, data, answer)
    if status >= 400:
        assert json.loads(answer)["error"]


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["c-gru", "gru", "c-deepset", "nothing"]),
    st.one_of(
        body.map(json.dumps), nested.map(json.dumps), st.binary(max_size=20), st.text(max_size=9)
    ),
)
def test_malformed_bodies(service, kind, name, data):
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    check(service, f"/v2/models/{name}/{kind}", data)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"sets": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"sets": [[[' + b"9" * 5000 + b", 1, 1]]]}",
        b'{"sets": [[[1e39, 1, 1]]]}',
        b'{"sets": [[[1e38, -1e38, 1e38]]]}',
        b'{"sets": [[[NaN, 1, Infinity]]]}',
        b'{"id": "\\ud800", "sets": [[[1, 1, 1]]]}',
        b'{"sets": [[[1, 1]]]}',
        b'{"sets": []}',
        b"null",
        b"\xff\xfe",
        b"",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_bodies(service, kind, data):
    check(service, f"/v2/models/c-gru/{kind}", data)


def test_paths_are_not_files(service):
    for path in ("/v2/models/../../etc/passwd", "/v2/models/%2e%2e%2f%2e%2e", "/..%00", "/%ff"):
        assert service.raw("GET", path)[0] == 404
    assert service.raw("PUT", INFER)[0] == 405


def test_limits(service):
    limits = Limits()
    many = np.zeros((limits.sets + 1, 1, 3))
    status, answer = service.call("POST", INFER, tensors(many))
    assert (status, str(limits.sets) in answer["error"]) == (413, True)
    status, _ = service.call("POST", INFER, {"sets": [[[0, 0, 0]] * (limits.instances + 1)]})
    assert status == 413
    status, answer = service.call("POST", "/v2/models/gru/infer", {"sets": [[[0, 0, 0]] * 3000]})
    assert (status, "limit" in answer["error"]) == (422, True)
    for asked in ({"orders": limits.orders + 1}, {"method": "shapley"}):
        body = {"sets": [[[0, 0, 0]] * 40], **asked}
        assert service.call("POST", "/v2/models/c-gru/explain", body)[0] == 422


def test_large_bodies(service):
    """A body that is announced is refused unread; one that is not, as soon as it is too large."""
    status, _, answer = service.raw(
        "POST", INFER, headers={"Content-Length": str(10**12), "Content-Type": "application/json"}
    )
    assert (status, b"too large" in answer) == (413, True)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        head = f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        piece = b"100000\r\n" + b" " * 2**20 + b"\r\n"
        for _ in range(Limits().body // 2**20 + 1):
            connection.sendall(piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_streams_are_limited(service):
    path = "/v2/models/c-gru/streams"
    opened = [service.call("POST", path) for _ in range(4)]
    assert [status for status, _ in opened] == [201, 201, 201, 429]
    for _, answer in opened[:3]:
        # A stream belongs to one network.
        assert service.call("DELETE", f"/v2/models/gru/streams/{answer['id']}")[0] == 404
        assert service.call("DELETE", f"{path}/{answer['id']}")[0] == 200
    status, answer = service.call("POST", "/v2/models/gru/streams")
    assert (status, "capacity networks" in answer["error"]) == (422, True)


def test_a_wrong_push_leaves_the_stream_as_it_was(service):
    path = "/v2/models/c-gru/streams"
    own = f"{path}/{service.call('POST', path)[1]['id']}"
    service.call("POST", own, {"instances": [[1, 2, 3]]})
    for wrong in ([[1, 2]], [[1, 2, None]], [[1, 2, 1e39]], [], "x"):
        assert service.call("POST", own, {"instances": wrong})[0] == 422
    assert service.call("DELETE", own)[1]["instances"] == 1


def test_closed_to_other_origins(service):
    headers = {"Origin": "http://elsewhere.example"}
    status, found, _ = service.raw("GET", "/v2", headers=headers)
    assert status == 200
    assert not [name for name in found if name.lower().startswith("access-control")]
    assert "default-src 'none'" in found["content-security-policy"]
    # A name that resolves to this machine, but is not its own.
    assert service.raw("GET", "/v2", headers={"Host": "elsewhere.example"})[0] == 421


def test_token(runs):
    token = "a-token-of-some-length"
    folder = runs["c-gru"].folder
    with Service(folder, "--host", "0.0.0.0", env={"CAPNETS_TOKEN": token}) as service:
        for sent in (None, "Bearer ", f"Bearer {token}x", f"Basic {token}", "Bearer \xe9"):
            headers = {} if sent is None else {"Authorization": sent}
            assert service.raw("GET", "/v2", headers=headers)[0] == 401
            assert service.raw("GET", "/metrics", headers=headers)[0] == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert service.raw("GET", "/v2", headers=headers)[0] == 200
        assert service.raw("GET", "/v2/health/live")[0] == 200
        assert service.stop() == 0


def test_other_hosts_need_a_token(runs):
    with pytest.raises(InputError, match="so a token is needed"):
        serve([runs["c-gru"].folder], host="0.0.0.0")
    with pytest.raises(InputError, match="at least 16"):
        serve([runs["c-gru"].folder], host="0.0.0.0", token="short")
