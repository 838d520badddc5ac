"""Checks of predictions: each depends on its own set and on nothing else."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from capnets.checks.subject import SIZES, Subject, difference, refused, require, same
from capnets.models.base import SetModel

__all__ = [
    "batch_mates_do_not_matter",
    "full_mask_is_no_mask",
    "order_is_as_declared",
    "padding_does_not_matter",
    "refuses_empty_sets",
    "refuses_wrong_input",
    "sets_of_one",
    "several_outputs_and_units",
    "starts_near_the_mean",
]


@torch.no_grad()
def several_outputs_and_units(subject: Subject) -> None:
    """Check shapes, and that outputs are scaled by the unit given to `start`.

    Predictions that are probabilities have no unit. A batch without sets has no rows.
    """
    model, x = subject.model(), subject.instances()
    one = torch.ones(model.outputs, dtype=torch.float64)
    level = 0.3 if model.probability else 2.0
    model.start(unit=one, label=level * one, size=5.0)
    prediction, values = model(x), model.added_values(x)
    require(
        prediction.shape == (len(x), model.outputs),
        f"a prediction must be sets x outputs, not {tuple(prediction.shape)}",
    )
    require(
        values.shape == (*x.shape[:2], model.outputs),
        f"added values must be sets x instances x outputs, not {tuple(values.shape)}",
    )
    nothing = model(x[:0]), model.added_values(x[:0])
    require(
        nothing[0].shape == (0, model.outputs) and nothing[1].shape == (0, *values.shape[1:]),
        "a batch without sets must have no predictions and no added values",
    )
    unit = torch.arange(2.0, 2 + model.outputs, dtype=torch.float64)
    model = subject.model()
    if model.probability:
        model.start(unit=unit, label=level * one, size=5.0)
        same(model.unit, one, "the unit of a probability is not 1")
        same(model(x), prediction, "a unit changes predictions that are probabilities")
        return
    model.start(unit=unit, label=level * unit, size=5.0)
    same(model.unit, unit, "the unit is not the one given to start")
    same(model(x), prediction * unit, "the prediction is not proportional to the unit")
    same(model.added_values(x), values * unit, "the added values are not proportional to the unit")


@torch.no_grad()
def sets_of_one(subject: Subject) -> None:
    """Check sets of one instance: its value is the prediction minus the baseline."""
    model, x = subject.model(), subject.instances(size=1)
    prediction = model(x)
    require(bool(prediction.isfinite().all()), "the prediction of a set of size one is not finite")
    same(
        model.added_values(x)[:, 0],
        prediction - model.baseline,
        "in a set of size one the added value is not the prediction minus the baseline",
    )


@torch.no_grad()
def starts_near_the_mean(subject: Subject) -> None:
    """Check that training begins near the mean label, whatever the unit and the set size."""
    for size, unit in ((5, 1.0), (2, 0.5)):
        predictions = []
        for model in subject.models(10):
            label = torch.full_like(model.unit, 0.3 if model.probability else 1e3)
            model.start(unit=torch.full_like(model.unit, unit), label=label, size=float(size))
            predictions.append(model(subject.instances(size=size)).mean(0))
        found = torch.stack(predictions).mean(0)
        allowed = 0.5 if model.probability else 0.2
        require(
            bool((found / label - 1).abs().max() < allowed),
            f"training on sets of size {size} begins at {found.tolist()} instead of near the mean "
            f"label {label.tolist()}: start must account for the set size",
        )


@torch.no_grad()
def full_mask_is_no_mask(subject: Subject) -> None:
    """Check that a mask without padding changes nothing."""
    model, x = subject.model(), subject.instances()
    full = torch.ones(x.shape[:2], dtype=torch.bool)
    same(model(x, full), model(x), "a mask without padding changes the prediction")
    same(
        model.added_values(x, full),
        model.added_values(x),
        "a mask without padding changes the added values",
    )


@torch.no_grad()
def batch_mates_do_not_matter(subject: Subject) -> None:
    """Check that a set gives the same result alone and in a batch with larger sets."""
    model = subject.model()
    x, mask = subject.ragged()
    prediction, values = model(x, mask), model.added_values(x, mask)
    for k, size in enumerate(SIZES):
        alone = x[k : k + 1, :size]
        same(
            prediction[k : k + 1],
            model(alone),
            f"the prediction of a set of size {size} changes beside larger sets",
        )
        same(
            values[k : k + 1, :size],
            model.added_values(alone),
            f"the added values of a set of size {size} change beside larger sets",
        )


@torch.no_grad()
def padding_does_not_matter(subject: Subject) -> None:
    """Check that finite numbers in the padding change nothing."""
    model = subject.model()
    x, mask = subject.ragged()
    prediction, values = model(x, mask), model.added_values(x, mask)
    for garbage in (1.0, -1e4, 1e6):
        filled, _ = subject.ragged(padding=garbage)
        same(model(filled, mask), prediction, "the content of the padding changes the prediction")
        again = model.added_values(filled, mask)
        same(again, values, "the content of the padding changes the added values")
        require(not bool(again[~mask].any()), "the added values of padding are not 0")


@torch.no_grad()
def order_is_as_declared(subject: Subject) -> None:
    """Check that `ordered` tells whether the order can change the prediction.

    If True, some initial weights must depend on the order; if False, none may, not even for
    instances that share features.
    """
    x = subject.instances()
    if subject.model().ordered:
        require(
            any(_order_changes(model, x) > 1e-6 for model in subject.models()),
            "it declares that order matters (ordered = True), but no order changes the prediction",
        )
        return
    for model in subject.models(3):
        for sets in (x, subject.tied()):
            gap = _order_changes(model, sets)
            require(
                gap <= 1e-9,
                "it declares that order does not matter (ordered = False), "
                f"but another order changes the prediction by {gap:.3g}",
            )


def _order_changes(model: SetModel, x: Tensor) -> float:
    """Return the largest change of the prediction in other orders."""
    prediction = model(x)
    orders = (
        torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))
        for seed in range(3)
    )
    return max(difference(model(x[:, order]), prediction) for order in orders)


@torch.no_grad()
def refuses_wrong_input(subject: Subject) -> None:
    """Check that wrong widths and masks with gaps raise an InputError."""
    model, x = subject.model(), subject.instances()
    gap = torch.ones(x.shape[:2], dtype=torch.bool)
    gap[0, 1] = False
    refused(partial(model, x, gap), "a mask with an instance behind a gap")
    if model.in_features is not None:
        wide = torch.cat([x, x], dim=-1) if x.ndim == 3 else x.flatten(2)
        refused(partial(model, wide), "instances of another shape")


@torch.no_grad()
def refuses_empty_sets(subject: Subject) -> None:
    """Check that a network that is not additive raises an InputError for empty sets."""
    model, x = subject.model(), subject.instances()
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[1] = False
    for call in (model.forward, model.added_values):
        refused(partial(call, x, mask), "an empty set in a batch")
        refused(partial(call, x[:, :0]), "a batch of empty sets")
