"""Export networks to ONNX, and run them with ONNX Runtime on whole sets and on streams."""

from capnets.export.engine import Engine
from capnets.export.folder import export
from capnets.export.state import StreamState
from capnets.export.stream import Stream
from capnets.export.streams import Streams

__all__ = ["Engine", "Stream", "StreamState", "Streams", "export"]
