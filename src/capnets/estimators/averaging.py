"""Predictions and added values of all outputs, averaged over orders."""

from __future__ import annotations

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
    found = orders.mean(sets, lambda read: evaluate.predict(model, read))
    return found.reshape(len(sets), model.outputs)


def mean_added_values(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Instances (as `sets.index` lists them) x outputs."""
    found = orders.mean(sets, lambda read: evaluate.added_values(model, read), per_instance=True)
    return found.reshape(len(sets.index), model.outputs)
