"""Read tables with one row per instance, .npz files and text into `Sets`."""

from capnets.ingest.columns import Columns, Feature, Schema
from capnets.ingest.folder import FeatureFolder, read_folder
from capnets.ingest.leakage import check_leakage
from capnets.ingest.npz import read_npz
from capnets.ingest.read import SUFFIXES, read_table
from capnets.ingest.set_data import SetData
from capnets.ingest.split import hold_out
from capnets.ingest.summary import Summary, summarize

__all__ = [
    "SUFFIXES", "Columns", "Feature", "FeatureFolder", "Schema", "SetData", "Summary",
    "check_leakage", "hold_out", "read_folder", "read_npz", "read_table", "summarize",
]  # fmt: skip
