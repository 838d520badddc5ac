"""Explain predictions by added values, in one order or averaged over several.

All n values of an order come from one pass of the network, because the network itself computes what
each instance adds. A model-agnostic explainer needs n passes.

If the prediction does not depend on the order, the mean over all orders is the Shapley value.
Otherwise it is what an instance adds on average when it is appended to a random part of the others.
The values then sum to the mean prediction over orders (Janossy pooling), and
`Explanation.prediction_spreads` measures how far single orders are from that mean.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from capnets.explain.explanation import Explanation
from capnets.explain.streaming_mean import StreamingMean
from capnets.explain.value import CHUNK, SetValue
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.covariates import covariates_in_words
from capnets.sets.orders import Orders, as_orders
from capnets.sets.ragged import owners_of, starts_of

__all__ = ["about_sets", "caution", "explain_added"]


def explain_added(
    model: SetModel,
    sets: Sets,
    *,
    orders: Orders | int | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Explanation:
    """Return the added values of every instance; see `explain` for the parameters."""
    began = time.perf_counter()
    chosen = as_orders(orders, seed=seed)
    value = SetValue(model, sets, output=output, chunk=chunk)
    values, predictions = StreamingMean(), StreamingMean()
    for block in chosen.blocks(sets):
        read = [_in_order(value, sets, order) for order in block]
        values.add(read)
        predictions.add([value.baselines + _per_set(sets, v) for v in read])
    several = values.count > 1
    return Explanation(
        method="added values" if values.count == 1 else "mean added values",
        values=values.mean,
        offsets=sets.offsets,
        predictions=predictions.mean,
        baselines=value.baselines,
        orders=chosen,
        exact=chosen.exact,
        passes=value.passes,
        seconds=time.perf_counter() - began,
        errors=None if chosen.exact else values.error,
        spreads=values.spread if several else None,
        prediction_spreads=predictions.spread if several else None,
        caution="" if several else caution(model, sets),
        **about_sets(sets, value.output),
    )


def caution(model: SetModel, sets: Sets) -> str:
    """Return a sentence if labels may not determine the values, else an empty string."""
    sizes = np.unique(sets.sizes)
    if not model.positional or len(sets) < 2 or len(sizes) > 1 or sizes[0] < 2:
        return ""
    return (
        f"Caution: all sets have {sizes[0]} instances, and values of this network can depend on "
        "the position. If it was trained on sets of one size, labels determine only the sum of "
        "the values, and a later instance may be credited instead. Use c-deepset, train on sets "
        "of several sizes, or average over orders."
    )


def about_sets(sets: Sets, output: int) -> dict[str, Any]:
    """Return the names, labels and instances of sets, as fields of an `Explanation`."""
    from capnets.explain.render.instances import instances_of

    y = sets.y
    return {
        "ids": None if sets.ids is None else tuple(str(name) for name in sets.ids),
        "labels": y if y is None or y.ndim == 1 else y[:, output],
        "covariates": covariates_in_words(sets),
        "instances": instances_of(sets),
    }


def _in_order(value: SetValue, sets: Sets, order: Array) -> Array:
    """Return the added values of one order, in the given order of the instances."""
    reordered = sets.reorder(order)  # checks the order
    values = np.empty(len(sets.index))
    places = starts_of(sets.sizes) + order
    values[places] = value.added_values(reordered.index, sets.offsets)
    return values


def _per_set(sets: Sets, values: Array) -> Array:
    owners = owners_of(sets.sizes)
    return np.bincount(owners, weights=values, minlength=len(sets))
