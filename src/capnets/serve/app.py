"""Assemble the service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from capnets.errors import InputError
from capnets.serve.gate import Gate
from capnets.serve.json_route import JsonRoute, error_response
from capnets.serve.limits import Limits, RequestError
from capnets.serve.routes import VERSION, add_health, add_models, add_pages, add_streams, add_text
from capnets.serve.service import Service
from capnets.serve.shortcut import Shortcut

__all__ = ["create_app"]


def create_app(
    folders: Iterable[str | Path],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    page: str | None = None,
) -> Gate:
    """Return the service for some runs or exports.

    Parameters
    ----------
    folders
        Runs, or what `export` wrote.
    limits
        Limits on requests.
    token
        What clients must send; without one only local host names are served.
    page
        HTML for the address `/`; by default it leads to the documentation.
    """
    service = Service(folders, limits=limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="capnets",
        version=VERSION,
        description="Predictions of sets, and what each instance adds.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.router.route_class = JsonRoute
    _add_errors(app)
    add_health(app, service)
    add_models(app, service)
    add_text(app, service)
    add_streams(app, service)
    add_pages(app, page)
    return Gate(Shortcut(app, service), limits=service.limits, metrics=service.metrics, token=token)


def _add_errors(app: FastAPI) -> None:
    def refused(_: Request, error: Any) -> Response:
        return error_response(error)

    def invalid(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return JSONResponse({"error": f"{place}: {first['msg']}"}, 422)

    def other(_: Request, error: Any) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    app.add_exception_handler(RequestError, refused)
    app.add_exception_handler(InputError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)
