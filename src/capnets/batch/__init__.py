"""Predict large tables, in one process or on Dask, Ray or Spark.

>>> from capnets.batch import predict  # a frame of whole sets in, predictions and values out
"""

from capnets.batch.engines import ENGINES, predict_dataset
from capnets.batch.frames import predict

__all__ = ["ENGINES", "predict", "predict_dataset"]
