"""Predictions and added values of all outputs, averaged over orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from capnets import evaluate
from capnets.models import Ensemble
from capnets.models.base import SetModel
from capnets.nn.projection import Project
from capnets.sets import Array, Sets
from capnets.sets.batch import Batches
from capnets.sets.orders import Orders
from capnets.training.ahead import behind_projection, components

__all__ = ["mean_added_values", "mean_prediction"]


def mean_prediction(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Return predictions, sets x outputs; one order is read where order does not matter."""
    orders = orders if model.ordered else Orders()
    found = _mean(evaluate.predict, model, sets, orders)
    return found.reshape(len(sets), model.outputs)


def mean_added_values(model: SetModel, sets: Sets, orders: Orders) -> Array:
    """Return added values, instances (in the order of `sets.index`) x outputs.

    Order matters to added values even where it does not matter to predictions: a value depends on
    what came before.
    """
    found = _mean(evaluate.added_values, model, sets, orders, per_instance=True)
    return found.reshape(len(sets.index), model.outputs)


def _mean(
    measure: Callable[[SetModel, Sets], Array],
    model: SetModel,
    sets: Sets,
    orders: Orders,
    *,
    per_instance: bool = False,
) -> Array:
    """Average over orders; principal components are the same in all orders and computed once."""
    members = model.each if isinstance(model, Ensemble) else [model]
    data = Batches(sets)
    fixed = all(isinstance(member.inputs, Project) for member in members)
    if orders.kind == "given" or not fixed or data.streamed or sets.covariates is not None:
        return orders.mean(sets, partial(measure, model), per_instance=per_instance)
    means = []
    for member in members:
        found = components(member.inputs, data)
        if not np.isfinite(found.sum()):
            sets.check_finite()
        behind = partial(_measure_behind, measure, behind_projection(member.eval()), found)
        means.append(orders.mean(sets, behind, per_instance=per_instance))
    mean: Array = np.mean(means, axis=0)
    return mean


def _measure_behind(
    measure: Callable[[SetModel, Sets], Array], view: SetModel, found: Array, sets: Sets
) -> Array:
    """Measure the rest of a network on sets of components."""
    return measure(view, replace(sets, instances=found, feature_names=None))
