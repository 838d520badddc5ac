"""Data in: tables with one row per instance, .npz files and text become `Sets`."""

from capnets.ingest.columns import Columns, Feature, Schema
from capnets.ingest.gather import Table, read_table
from capnets.ingest.npz import npz_classes, read_npz
from capnets.ingest.split import hold_out

__all__ = [
    "Columns", "Feature", "Schema", "Table", "hold_out", "npz_classes", "read_npz", "read_table",
]  # fmt: skip
