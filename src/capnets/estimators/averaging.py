"""Predictions and added values of all outputs, averaged over orders.

The mean over orders of what an instance added sums, over a set, to the mean prediction: averaging
keeps values additive.
"""

from __future__ import annotations

import numpy as np

from capnets import evaluate
from capnets.explain.orders import Orders
from capnets.models.base import SetModel
from capnets.sets import Array, Sets

__all__ = ["choose_orders", "mean_added_values", "mean_prediction"]


def choose_orders(model: SetModel, count: int) -> Orders:
    """So many random orders; the given one where a single one is wanted or order cannot matter."""
    return Orders.random(count) if count > 1 and model.ordered else Orders()


def mean_prediction(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Sets x outputs."""
    total = np.zeros((len(sets), model.outputs))
    count = 0
    for block in orders.blocks(sets):
        for order in block:
            prediction = evaluate.predict(model, sets.reorder(order))
            total += prediction.reshape(total.shape)
            count += 1
    return total / count


def mean_added_values(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Instances (as `sets.index` lists them) x outputs."""
    total = np.zeros((len(sets.index), model.outputs))
    starts = np.repeat(sets.offsets[:-1], sets.sizes)
    count = 0
    for block in orders.blocks(sets):
        for order in block:
            values = evaluate.added_values(model, sets.reorder(order))
            total[starts + order] += values.reshape(total.shape)
            count += 1
    return total / count
