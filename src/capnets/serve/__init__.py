"""Serve networks over HTTP: predictions, explanations, selections and streams."""

from capnets.serve.limits import Limits
from capnets.serve.server import serve

__all__ = ["Limits", "serve"]
