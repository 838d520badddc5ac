"""Draw malformed requests: broken HTTP, broken JSON, and JSON of the wrong form."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable, Iterator

__all__ = ["CLOSE", "ask", "requests"]

KINDS = ("infer", "explain", "select", "streams", "streams/none", "nothing")
CLOSE = "Host: localhost\r\nConnection: close\r\n\r\n"
#: Values where others are expected.
ODD = (None, True, -1, 0, 1e300, 2**70, "", "x", [], {}, [[]], [[[]]], [[[1, "a"]]], [[1, 2], [3]])


def requests(count: int, *, models: list[str], seed: int = 0) -> Iterator[bytes]:
    """Yield whole requests, as bytes."""
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(DAMAGES)(rng, rng.choice([*models, "none", "..", "%00"]))


def ask(port: int, request: bytes, *, timeout: float = 30.0) -> int:
    """Send a request; return the status of the answer, 0 if there is none."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        answer = b""
        try:
            connection.sendall(request)
            answer = connection.recv(4096)
            while answer and connection.recv(65536):
                pass
        except ConnectionError:  # closed after an answer to the head of a large body
            pass
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def _post(path: str, body: bytes, *, length: int | None = None, kind: str = "json") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nContent-Type: application/{kind}\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n{CLOSE}"
    )
    return head.encode() + body


def _path(rng: random.Random, model: str) -> str:
    return f"/v2/models/{model}/{rng.choice(KINDS)}"


def _body(rng: random.Random) -> bytes:
    rows = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(rng.randint(0, 4))]
    return json.dumps({"sets": [rows], "k": 1, "instances": rows}).encode()


def _wrong_form(rng: random.Random, model: str) -> bytes:
    names = ("sets", "inputs", "k", "orders", "seed", "method", "output", "instances", "id")
    body = {name: rng.choice(ODD) for name in names if rng.random() < 0.5}
    return _post(_path(rng, model), json.dumps(body).encode())


def _wrong_tensor(rng: random.Random, model: str) -> bytes:
    tensor = {
        "name": rng.choice(["instances", "mask", "sizes", 3]),
        "datatype": rng.choice(["FP32", "INT64", "BOOL", "FP8"]),
        "shape": [rng.choice([0, 1, 3, -1, 2**31, "x"]) for _ in range(rng.randint(0, 5))],
        "data": rng.choice(ODD),
    }
    return _post(_path(rng, model), json.dumps({"inputs": [tensor, tensor]}).encode())


def _cut(rng: random.Random, model: str) -> bytes:
    body = _body(rng)
    return _post(_path(rng, model), body[: rng.randrange(len(body))])


def _flipped(rng: random.Random, model: str) -> bytes:
    body = bytearray(_body(rng))
    for _ in range(rng.randint(1, 4)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return _post(_path(rng, model), bytes(body))


def _nested(rng: random.Random, model: str) -> bytes:
    return _post(_path(rng, model), b'{"sets": ' + b"[" * rng.choice([10, 2000, 50_000]))


def _wrong_length(rng: random.Random, model: str) -> bytes:
    return _post(_path(rng, model), _body(rng), length=rng.choice([0, 1, 10**6, 10**12]))


def _other_type(rng: random.Random, model: str) -> bytes:
    return _post(_path(rng, model), _body(rng), kind=rng.choice(["xml", "octet-stream", "\xff"]))


def _garbage(rng: random.Random, _: str) -> bytes:
    return rng.randbytes(rng.randint(1, 200)) + b"\r\n\r\n"


def _wrong_line(rng: random.Random, model: str) -> bytes:
    method = rng.choice(["GET", "PUT", "DELETE", "PATCH", "FOO", "", "post"])
    return f"{method} {_path(rng, model)} HTTP/1.1\r\n{CLOSE}".encode()


DAMAGES: tuple[Callable[[random.Random, str], bytes], ...] = (
    _wrong_form, _wrong_tensor, _cut, _flipped, _nested, _wrong_length, _other_type, _garbage,
    _wrong_line,
)  # fmt: skip
