"""Predictions and added values of all outputs, averaged over orders."""

from __future__ import annotations

from capnets import evaluate
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders

__all__ = ["mean_added_values", "mean_prediction"]


def mean_prediction(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Return predictions, sets x outputs; one order is read where order does not matter."""
    orders = orders if model.ordered else Orders()
    found = orders.mean(sets, lambda read: evaluate.predict(model, read))
    return found.reshape(len(sets), model.outputs)


def mean_added_values(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Return added values, instances (in the order of `sets.index`) x outputs.

    Order matters to added values even where it does not matter to predictions: a value depends on
    what came before.
    """
    found = orders.mean(sets, lambda read: evaluate.added_values(model, read), per_instance=True)
    return found.reshape(len(sets.index), model.outputs)
