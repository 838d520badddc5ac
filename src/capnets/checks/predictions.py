"""What is promised of every prediction: it depends on one set, and on nothing else."""

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
]


@torch.no_grad()
def several_outputs_and_units(subject: Subject) -> None:
    """A row of outputs per set and per instance, each scaled by the unit that it was started with.

    No sets are a batch too, with no rows.
    """
    model, x = subject.model(), subject.instances()
    one = torch.ones(model.outputs, dtype=torch.float64)
    model.start(unit=one, label=2 * one, size=5.0)
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
    model.start(unit=unit, label=2 * unit, size=5.0)
    same(model.unit, unit, "the unit is not the one that it was started with")
    same(model(x), prediction * unit, "the prediction is not proportional to the unit")
    same(model.added_values(x), values * unit, "the added values are not proportional to the unit")


@torch.no_grad()
def sets_of_one(subject: Subject) -> None:
    """A set of one instance is a set; all that it is worth was added by that instance."""
    model, x = subject.model(), subject.instances(size=1)
    prediction = model(x)
    require(bool(prediction.isfinite().all()), "the prediction of a set of size one is not finite")
    same(
        model.added_values(x)[:, 0],
        prediction,
        "in a set of size one the added value is not the prediction",
    )


@torch.no_grad()
def full_mask_is_no_mask(subject: Subject) -> None:
    """A mask that hides nothing changes nothing."""
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
    """A set gives the same answer alone and beside larger sets."""
    model = subject.model()
    x, mask = subject.ragged()
    prediction, values = model(x, mask), model.added_values(x, mask)
    for k, size in enumerate(SIZES):
        alone = x[k : k + 1, :size]
        same(
            prediction[k : k + 1],
            model(alone),
            f"a set of size {size} is predicted otherwise alone than beside larger sets",
        )
        same(
            values[k : k + 1, :size],
            model.added_values(alone),
            f"a set of size {size} has other added values alone than beside larger sets",
        )


@torch.no_grad()
def padding_does_not_matter(subject: Subject) -> None:
    """Whatever (finite) lies in the padding changes nothing, and adds nothing."""
    model = subject.model()
    x, mask = subject.ragged()
    prediction, values = model(x, mask), model.added_values(x, mask)
    for garbage in (1.0, -1e4, 1e6):
        filled, _ = subject.ragged(padding=garbage)
        same(model(filled, mask), prediction, "what lies in the padding changes the prediction")
        again = model.added_values(filled, mask)
        same(again, values, "what lies in the padding changes the added values")
        require(not bool(again[~mask].any()), "the added values of padding are not 0")


@torch.no_grad()
def order_is_as_declared(subject: Subject) -> None:
    """`ordered` says whether the order of the instances can change the prediction.

    It can if it does so for some start weights; it cannot if it never does, not even where
    instances have features in common.
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
    """By how much the prediction differs in other orders."""
    prediction = model(x)
    orders = (
        torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))
        for seed in range(3)
    )
    return max(difference(model(x[:, order]), prediction) for order in orders)


@torch.no_grad()
def refuses_wrong_input(subject: Subject) -> None:
    """Instances of another width and masks with gaps get an error for people."""
    model, x = subject.model(), subject.instances()
    gap = torch.ones(x.shape[:2], dtype=torch.bool)
    gap[0, 1] = False
    refused(partial(model, x, gap), "a mask with an instance behind a gap")
    if model.in_features is not None:
        wide = torch.cat([x, x], dim=-1) if x.ndim == 3 else x.flatten(2)
        refused(partial(model, wide), "instances of another shape")


@torch.no_grad()
def refuses_empty_sets(subject: Subject) -> None:
    """A network that is not additive says that it cannot predict a set without instances."""
    model, x = subject.model(), subject.instances()
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[1] = False
    for call in (model.forward, model.added_values):
        refused(partial(call, x, mask), "an empty set in a batch")
        refused(partial(call, x[:, :0]), "a batch of empty sets")
