"""Data in: tables with one row per instance, .npz files and text become `Sets`."""

from capnets.tables.columns import Columns, Feature, Schema
from capnets.tables.gather import Table, read_table
from capnets.tables.npz import npz_classes, read_npz
from capnets.tables.split import hold_out

__all__ = [
    "Columns", "Feature", "Schema", "Table", "hold_out", "npz_classes", "read_npz", "read_table",
]  # fmt: skip
