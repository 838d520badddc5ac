"""Measurements of the service in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]


class Metrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "capnets_requests", "Answered requests.", ["route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "capnets_request_seconds", "Time to answer.", ["route"], registry=self._registry
        )
        self.active = Gauge(
            "capnets_active_requests", "Requests in progress.", registry=self._registry
        )
        self.streams = Gauge("capnets_open_streams", "Open streams.", registry=self._registry)
        self.batch = Histogram(
            "capnets_batch_requests",
            "Requests computed in one batch.",
            ["model"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return all measurements."""
        return generate_latest(self._registry)
