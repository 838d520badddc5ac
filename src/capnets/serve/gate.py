"""Check every request before it reaches the service: host, token, body, number in progress."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from capnets.serve.json_route import error_response
from capnets.serve.limits import Limits, RequestError
from capnets.serve.metrics import Metrics

__all__ = ["CLOSED", "Gate", "Message", "Receive", "Send"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: Nothing may be loaded, framed or sent; pages set a policy of their own.
CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": CLOSED.encode(),
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
LOCAL = {"localhost", "127.0.0.1", "[::1]"}


class Gate:
    """Middleware around the service.

    Parameters
    ----------
    app
        The service.
    limits
        Limits on body, time and requests in progress.
    metrics
        Count requests here.
    token
        What clients must send as `Authorization: Bearer …`. Without one, only requests to local
        host names are answered, so that a foreign page cannot reach the service by a name of its
        own that resolves to this machine.
    """

    def __init__(self, app: Any, *, limits: Limits, metrics: Metrics, token: str | None) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._token = None if token is None else token.encode()
        self._active = 0
        metrics.active.set_function(lambda: self._active)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        began, status = time.perf_counter(), 500

        async def send_closed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                extra = [pair for pair in HEADERS.items() if pair[0] not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        self._active += 1
        try:
            await self._answer(scope, receive, send_closed)
        finally:
            self._active -= 1
            route = scope.get("route", "other")
            route = getattr(route, "path", route)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            if not scope["path"].startswith("/v2/health/"):
                self._check(headers, scope["path"])
            body = await self._read(headers, receive)
        except RequestError as refused:
            answer = error_response(refused)
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        if body is None:  # the client is gone
            return
        read = False

        async def receive_read() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, receive_read, send)

    def _check(self, headers: dict[bytes, bytes], path: str) -> None:
        if self._token is None:
            host = headers.get(b"host", b"").decode("latin-1").rpartition(":")
            name = host[0] if host[2].isdigit() else "".join(host)
            if name.lower() not in LOCAL:
                raise RequestError(421, "this service answers to local host names only")
        else:
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            same = hmac.compare_digest(given.strip(), self._token)
            if kind.lower() != b"bearer" or not same:
                raise RequestError(401, "a valid token is needed: Authorization: Bearer …")
        if self._active > self._limits.waiting and path != "/metrics":
            raise RequestError(429, "too many requests are in progress; try again in a second")

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        most = self._limits.body
        large = RequestError(413, f"the body is too large: the limit is {most:,} bytes")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and (len(length) > 18 or int(length) > most):
            raise large
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > most:
                        raise large
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError:
            raise RequestError(408, "the body did not arrive in time") from None
