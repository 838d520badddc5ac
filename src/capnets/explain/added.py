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
from dataclasses import replace
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

__all__ = ["about_sets", "caution", "common_sizes", "explain_added", "with_caution"]


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
        caution=caution(model, common_sizes(sets), averaged=several),
        **about_sets(sets, value.output),
    )


def caution(model: SetModel, sizes: tuple[int, int] | None, *, averaged: bool = False) -> str:
    """Return reasons to doubt the values of a network; an empty string without any.

    Parameters
    ----------
    model
        The network.
    sizes
        Smallest and largest size of the training sets; None if it is not known.
    averaged
        Whether values are means over several orders.
    """
    found = [_one_size(model, sizes, averaged=averaged)]
    if model.pools:
        found.append(
            "Caution: C-Pool and C-Trees, which this network is or contains, predict prefixes from "
            "pooled statistics. On data with known values, such values were often far off. If "
            "values matter, name another network, such as c-deepset."
        )
    return " ".join(filter(None, found))


def _one_size(model: SetModel, sizes: tuple[int, int] | None, *, averaged: bool) -> str:
    """Return a sentence if all sets have one size, so that labels do not determine the values."""
    if sizes is None or sizes[0] != sizes[1] or sizes[0] < 2:
        return ""
    if model.covariates or bool(model.baseline.count_nonzero()):
        fault = (
            "labels do not determine how much of a prediction is baseline and how much the "
            "instances add"
        )
    elif model.positional and not averaged:
        fault = (
            "labels determine the sum of the values only: a later instance may be credited instead"
        )
    else:
        return ""
    return (
        f"Caution: all sets have {sizes[0]} instances. If all training sets had, {fault}. "
        "Use c-deepset without a baseline, or train on sets of several sizes."
    )


def with_caution(found: Explanation, model: SetModel, sizes: tuple[int, int] | None) -> Explanation:
    """Return an explanation with the caution for training sets of known sizes."""
    if sizes is None:
        return found
    averaged = found.prediction_spreads is not None
    return replace(found, caution=caution(model, sizes, averaged=averaged))


def common_sizes(sets: Sets) -> tuple[int, int] | None:
    """Return the smallest and the largest size of several sets; None for fewer than two."""
    return None if len(sets) < 2 else (int(sets.sizes.min()), int(sets.sizes.max()))


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
