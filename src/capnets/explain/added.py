"""Added values over orders, and predictions averaged the same way.

All n values of an order come from one pass of the network, whatever n is: reading the instances in
that order, it says itself what each one adds. A model-agnostic explainer needs n passes.

For a network whose answer does not depend on order the mean over all orders is the Shapley value.
For one whose answer does, it is what an instance adds on average *when it is read after* a random
part of the others; the values then sum to the mean of the prediction over orders (Janossy pooling),
and `Explanation.prediction_spreads` says how far single orders are from that mean.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from capnets.explain.explanation import Explanation
from capnets.explain.streaming_mean import Mean
from capnets.explain.value import CHUNK, Worth
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders, as_orders

__all__ = ["about", "added_values", "predict"]


def added_values(
    model: SetModel,
    sets: Sets,
    *,
    orders: Orders | int | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Explanation:
    """What each instance adds to those before it: in one order, or averaged over several.

    Parameters
    ----------
    model
        Any set network; for one that is not additive values are differences between the predictions
        of prefixes, counted from 0.
    sets
        What to explain.
    orders
        None for the given order, a number for so many random ones, or any `Orders`.
    seed
        What random orders are drawn from.
    output
        Which output to explain, when there are several.
    chunk
        Most instances in one network batch; bounds the memory whatever the number of orders.
    """
    began = time.perf_counter()
    chosen = as_orders(orders, seed=seed)
    worth = Worth(model, sets, output=output, chunk=chunk)
    values, predictions = Mean(), Mean()
    for block in chosen.blocks(sets):
        read = [_in_order(worth, sets, order) for order in block]
        values.add(read)
        predictions.add([_per_set(sets, v) for v in read])
    several = values.count > 1
    return Explanation(
        method="added values" if values.count == 1 else "mean added values",
        values=values.mean,
        offsets=sets.offsets,
        predictions=predictions.mean,
        baselines=np.zeros(len(sets)),
        orders=chosen,
        exact=chosen.exact,
        passes=worth.passes,
        seconds=time.perf_counter() - began,
        errors=None if chosen.exact else values.error,
        spreads=values.spread if several else None,
        prediction_spreads=predictions.spread if several else None,
        **about(sets, worth.output),
    )


def predict(
    model: SetModel,
    sets: Sets,
    *,
    orders: Orders | int | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Array:
    """One prediction per set, averaged over orders (Janossy pooling)."""
    worth = Worth(model, sets, output=output, chunk=chunk)
    mean = Mean()
    for block in as_orders(orders, seed=seed).blocks(sets):
        mean.add([worth.of(sets.reorder(order).index, sets.offsets) for order in block])
    return mean.mean


def about(sets: Sets, output: int) -> dict[str, Any]:
    """What explanations repeat about the sets explained: their names and labels."""
    y = sets.y
    return {
        "ids": None if sets.ids is None else tuple(str(name) for name in sets.ids),
        "labels": y if y is None or y.ndim == 1 else y[:, output],
    }


def _in_order(worth: Worth, sets: Sets, order: Array) -> Array:
    """The added values of one order, each where its instance stands in the given order."""
    reordered = sets.reorder(order)
    values = np.empty(len(sets.index))
    values[np.repeat(sets.offsets[:-1], sets.sizes) + order] = worth.added(
        reordered.index, sets.offsets
    )
    return values


def _per_set(sets: Sets, values: Array) -> Array:
    owners = np.repeat(np.arange(len(sets)), sets.sizes)
    return np.bincount(owners, weights=values, minlength=len(sets))
