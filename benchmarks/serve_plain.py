"""Serve a network with plain FastAPI and torch, the peer of serve.py.

    python benchmarks/serve_plain.py RUN PORT

What a careful engineer writes in an afternoon: typed bodies, one torch thread, inference mode,
uvicorn with uvloop and httptools. `/def` computes in FastAPI's thread pool, as its documentation
advises for work that blocks; `/async` computes on the event loop, which is quicker per request and
blocks everybody else meanwhile.
"""

from __future__ import annotations

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from capnets.runs import Run


class Request(BaseModel):
    """One set."""

    instances: list[list[float]]


class Answer(BaseModel):
    """The prediction and what each instance adds."""

    prediction: float
    values: list[float]


def create_app(folder: str) -> FastAPI:
    """Return the application."""
    torch.set_num_threads(1)
    model = Run(folder).model.eval()
    app = FastAPI()

    @torch.inference_mode()
    def compute(request: Request) -> Answer:
        values = model.values(torch.tensor(request.instances)[None])
        total = model.baseline.sum() + values.sum()
        return Answer(prediction=float(total), values=values.flatten().tolist())

    @app.post("/def")
    def in_threads(request: Request) -> Answer:
        return compute(request)

    @app.post("/async")
    async def on_the_loop(request: Request) -> Answer:
        return compute(request)

    return app


if __name__ == "__main__":
    uvicorn.run(create_app(sys.argv[1]), port=int(sys.argv[2]), log_level="warning")
