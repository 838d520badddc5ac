"""Aggregations: compute added values and the prediction from decoded instances."""

from __future__ import annotations

from capnets.models.aggregations.any import Any
from capnets.models.aggregations.base import Aggregation
from capnets.models.aggregations.last import Last
from capnets.models.aggregations.mean import Mean
from capnets.models.aggregations.mean_and_sum import MeanAndSum
from capnets.models.aggregations.sum import Sum

__all__ = ["AGGREGATIONS", "BASELINES", "Aggregation", "Any", "Last", "Mean", "MeanAndSum", "Sum"]

AGGREGATIONS: dict[str, type[Aggregation]] = {
    "sum": Sum,
    "mean": Mean,
    "mean+sum": MeanAndSum,
    "any": Any,
    "last": Last,
}

#: Prediction for the empty set: 0 as in the paper, or learned, starting at the mean label.
BASELINES = ("none", "learned")
