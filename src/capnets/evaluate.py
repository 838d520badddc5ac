"""Apply a network to sets: predictions, added values, metrics, order sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capnets import metrics
from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.models.parts import in_parts
from capnets.nn.backend import threads_for
from capnets.sets import Array, Sets
from capnets.sets.batch import Batch, Batches, instances_per_batch
from capnets.sets.covariates import check_same
from capnets.sets.ragged import scatter_padded

__all__ = ["added_values", "baselines", "evaluate", "order_sensitivity", "predict"]


@torch.no_grad()
def predict(model: SetModel, sets: Sets, *, batch_size: int = 1000) -> Array:
    """Return one prediction per set, or a row per set for a network with several outputs."""
    out = np.empty((len(sets), model.outputs), dtype=np.float32)
    with threads_for(model):
        for batch in _read(model, sets, batch_size):
            out[batch.set_index] = _array(in_parts(model, batch.x)(batch.x, batch.mask))
            del batch  # before the next one is read
    return out[:, 0] if model.outputs == 1 else out


@torch.no_grad()
def added_values(model: SetModel, sets: Sets, *, batch_size: int = 1000) -> Array:
    """Return the added value of every instance, in the order of `sets.index`."""
    out = np.empty((len(sets.index), model.outputs), dtype=np.float32)
    with threads_for(model):
        for batch in _read(model, sets, batch_size):
            values = in_parts(model, batch.x).added_values(batch.x, batch.mask)
            scatter_padded(out, _array(values), sets.offsets, batch.set_index)
            del batch, values
    return out[:, 0] if model.outputs == 1 else out


@torch.no_grad()
def baselines(model: SetModel, sets: Sets) -> Array:
    """Return the prediction for the empty set with the covariates of every set: sets x outputs."""
    check_same(sets, model.covariates, None, who="this network")
    if sets.covariates is None:
        return np.tile(_array(model.baseline), (len(sets), 1))
    known = torch.from_numpy(np.array(sets.covariates, dtype=np.float32)).to(model.unit)
    return _array(model.eval().baselines(known[:, None]))


def evaluate(model: SetModel, sets: Sets, *, expected: Any = None) -> dict[str, float]:
    """Return the metrics of a network on labelled sets.

    Parameters
    ----------
    model
        A trained network.
    sets
        Sets with labels.
    expected
        The expected added values of a set task. Then the accuracy and the error of the added
        values are returned too.
    """
    if sets.y is None:
        raise InputError("the sets have no labels to compare predictions with")
    prediction = predict(model, sets)
    result = metrics.regression(sets.y, prediction)
    if expected is not None:
        result["accuracy"] = metrics.accuracy(sets.y, prediction)
        values = added_values(model, sets)
        result["added_value_error"] = metrics.added_value_error(expected, values)
    return result


def order_sensitivity(
    model: SetModel, sets: Sets, *, orders: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Measure how much predictions depend on the order of the instances.

    Returns
    -------
    sensitivity
        `mse`: the error in each random order; `mean`, `median` and `deviation` of these errors;
        `averaged`: the error of the mean prediction over orders; `spread`: the standard deviation
        of a prediction over orders, averaged over sets.
    """
    if orders < 2:
        raise InputError(f"orders must be at least 2, not {orders}")
    if sets.y is None:
        raise InputError("the sets have no labels to compare predictions with")
    generator = torch.Generator().manual_seed(seed)
    every = np.stack([predict(model, sets.shuffled(generator)) for _ in range(orders)])
    errors = [metrics.mse(sets.y, p) for p in every]
    return {
        "mse": errors,
        "mean": float(np.mean(errors)),
        "median": float(np.median(errors)),
        "deviation": float(np.std(errors)),
        "averaged": float(metrics.mse(sets.y, every.mean(axis=0))),
        "spread": float(every.std(axis=0).mean()),
    }


def _read(model: SetModel, sets: Sets, size: int) -> Iterator[Batch]:
    if size < 1:
        raise InputError(f"batch_size must be at least 1, not {size}")
    check_same(sets, model.covariates, None, who="this network")
    model.eval()
    most = instances_per_batch(sets)

    def checked(batch: Batch) -> Batch:
        if not math.isfinite(batch.x.sum()):  # a sum is a quick first check
            sets.check_finite()
        batch = batch.to(model.unit.device)
        return replace(batch, x=batch.x.to(model.unit.dtype))

    return map(checked, Batches(sets).epoch(size=size, instances=most, bucket=True))


def _array(values: Tensor) -> Array:
    return values.detach().cpu().numpy()
