"""Routes of the service: server, models, streams and pages."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.responses import HTMLResponse, RedirectResponse, Response

from capnets.export import Stream
from capnets.serve.bodies import EmbedBody, ExplainBody, PushBody, SelectBody
from capnets.serve.documentation import documentation_page
from capnets.serve.limits import RequestError
from capnets.serve.service import Service
from capnets.serve.shortcut import INFER
from capnets.serve.tensors import SetsBody, as_array

__all__ = ["VERSION", "add_health", "add_models", "add_pages", "add_streams", "add_text"]

VERSION = version("capnets")


def add_health(app: FastAPI, service: Service) -> None:
    """Add the routes about the server."""

    @app.get("/v2", tags=["server"])
    async def server_metadata() -> dict[str, Any]:
        """Return name and version of the server, and the names of its models."""
        names = list(service.networks)
        return {"name": "capnets", "version": VERSION, "extensions": [], "models": names}

    @app.get("/v2/health/live", tags=["server"])
    async def live() -> dict[str, bool]:
        """Return whether the server runs."""
        return {"live": True}

    @app.get("/v2/health/ready", tags=["server"])
    async def ready() -> dict[str, bool]:
        """Return whether all models are loaded."""
        return {"ready": True}

    @app.get("/metrics", tags=["server"])
    async def metrics() -> Response:
        """Return measurements in the format of Prometheus."""
        service.metrics.streams.set(len(service.streams))
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def add_models(app: FastAPI, service: Service) -> None:
    """Add the routes that compute with a model."""

    @app.get("/v2/models/{name}", tags=["models"])
    async def model_metadata(name: str) -> dict[str, Any]:
        """Return inputs, outputs and properties of a model."""
        return service.network(name).metadata()

    @app.get("/v2/models/{name}/ready", tags=["models"])
    async def model_ready(name: str) -> dict[str, Any]:
        """Return whether a model is loaded."""
        return {"name": service.network(name).name, "ready": True}

    @app.post(INFER, tags=["models"])
    async def infer(name: str, body: SetsBody) -> dict[str, Any]:
        """Predict sets and return what each instance adds, in the given order."""
        return await service.infer(name, body)

    @app.post("/v2/models/{name}/explain", tags=["models"])
    async def explain(name: str, body: ExplainBody) -> dict[str, Any]:
        """Explain predictions: added values over orders, or Shapley values."""
        network = service.network(name)
        given = service.read(network, body)
        return await service.on(service.explaining, network.explain, body, given)

    @app.post("/v2/models/{name}/select", tags=["models"])
    async def select(name: str, body: SelectBody) -> dict[str, Any]:
        """Select the k instances of each set that have the highest value together."""
        network = service.network(name)
        given = service.read(network, body)
        return await service.on(service.explaining, network.select, body, given)


def add_text(app: FastAPI, service: Service) -> None:
    """Add the route that turns text into instances."""

    @app.post("/v2/models/{name}/embed", tags=["models"])
    async def embed(name: str, body: EmbedBody) -> dict[str, Any]:
        """Divide a text into sentences and return them as instances of the network."""
        return await service.on(service.embedding, service.network(name).embed, body)


def add_streams(app: FastAPI, service: Service) -> None:
    """Add the routes of streams."""

    def about(stream: Stream) -> dict[str, Any]:
        prediction = stream.prediction
        listed = [prediction] if isinstance(prediction, float) else prediction.tolist()
        return {"instances": len(stream), "prediction": listed}

    def read_next(stream: Stream, body: PushBody) -> dict[str, Any]:
        x = as_array(body.instances, "instances")
        if len(x) > service.limits.instances:
            raise RequestError(
                413, f"at most {service.limits.instances} instances can be pushed at once"
            )
        values = stream.push(x)
        return {"values": values.tolist(), **about(stream)}

    @app.post("/v2/models/{name}/streams", status_code=201, tags=["streams"])
    async def open_stream(name: str) -> dict[str, Any]:
        """Open a stream: a set whose instances come one after another."""
        stream_id, stream = service.streams.open(name, service.network(name).engine)
        return {"id": stream_id, **about(stream)}

    @app.post("/v2/models/{name}/streams/{stream_id}", tags=["streams"])
    async def push(name: str, stream_id: str, body: PushBody) -> dict[str, Any]:
        """Read instances and return what each adds to those before it."""
        stream = service.streams.get(name, stream_id)
        return await service.on(service.streaming, read_next, stream, body)

    @app.delete("/v2/models/{name}/streams/{stream_id}", tags=["streams"])
    async def close_stream(name: str, stream_id: str) -> dict[str, Any]:
        """Close a stream and return its final prediction."""
        return about(service.streams.close(name, stream_id))


def add_pages(app: FastAPI, page: str | None) -> None:
    """Add the pages for people."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        text, policy = documentation_page(app.openapi())
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    @app.get("/", include_in_schema=False)
    async def start() -> Response:
        if page is None:
            return RedirectResponse("/docs")
        # The page states its own policy; this one adds what a document cannot state itself.
        return HTMLResponse(page, headers={"Content-Security-Policy": "frame-ancestors 'none'"})
