"""Answer inference without a router, which would cost more than the network itself."""

from __future__ import annotations

from typing import Any

from capnets.errors import InputError
from capnets.serve.gate import Message, Receive, Send
from capnets.serve.json_route import error_response, json_response, read_body
from capnets.serve.limits import RequestError
from capnets.serve.service import Service
from capnets.serve.tensors import SetsBody

__all__ = ["INFER", "Shortcut"]

#: Where sets are sent.
INFER = "/v2/models/{name}/infer"
BEFORE, AFTER = INFER.split("{name}")


class Shortcut:
    """Middleware that answers inference of known models itself.

    Parameters
    ----------
    app
        Answers everything else.
    service
        The models.
    """

    def __init__(self, app: Any, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        name = _name(scope)
        if name not in self._service.networks:
            await self._app(scope, receive, send)
            return
        scope["route"] = INFER
        try:
            body = read_body(SetsBody, (await receive())["body"])
            answer = json_response(await self._service.infer(name, body))
        except (RequestError, InputError) as error:
            answer = error_response(error)
        await answer(scope, receive, send)


def _name(scope: Message) -> str:
    """Return the model that a request asks; empty if it is no inference."""
    path: str = scope.get("path", "")
    if scope.get("method") != "POST" or not (path.startswith(BEFORE) and path.endswith(AFTER)):
        return ""
    return path[len(BEFORE) : -len(AFTER)]
