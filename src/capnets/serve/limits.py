"""Limits of the service, and the errors that answer requests beyond them."""

from __future__ import annotations

from dataclasses import dataclass

from capnets.errors import InputError
from capnets.records import Record

__all__ = ["Limits", "RequestError"]


@dataclass(frozen=True)
class Limits(Record):
    """Limits on what clients may ask for.

    Parameters
    ----------
    body
        Bytes of a request body.
    sets
        Sets per request.
    instances
        Instances per request, padding included.
    orders
        Orders per explanation.
    work
        Instances that the network may read for one explanation or selection.
    sentences
        Sentences of a text that is to be embedded.
    streams
        Open streams of all networks. If all are in use, those idle for `idle` seconds are closed.
    idle
        Seconds after which an unused stream may be closed.
    waiting
        Requests in progress at the same time.
    seconds
        Time for reading a request, and for computing its answer.
    """

    body: int = 8 * 2**20
    sets: int = 1024
    instances: int = 65_536
    orders: int = 256
    work: int = 4_000_000
    sentences: int = 256
    streams: int = 1024
    idle: float = 3600.0
    waiting: int = 256
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if not value > 0:
                raise InputError(f"the limit {name} must be positive, not {value}")


class RequestError(Exception):
    """A request that is answered with an error status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
