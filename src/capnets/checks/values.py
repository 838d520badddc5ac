"""Checks of added values."""

from __future__ import annotations

from functools import partial

import torch

from capnets.checks.subject import SIZES, Subject, refused, require, same
from capnets.models import Ensemble, SteppingModel

__all__ = [
    "differences_are_values",
    "empty_sets_are_worth_the_baseline",
    "later_instances_do_not_matter",
    "prefixes_keep_their_values",
    "refuses_other_states",
    "steps_equal_batches",
    "values_are_differences_of_prefixes",
    "values_sum_to_prediction",
]


@torch.no_grad()
def values_sum_to_prediction(subject: Subject) -> None:
    """Check that added values sum to the prediction minus the baseline."""
    model = subject.model()
    x, mask = subject.ragged()
    same(
        model.added_values(x, mask).sum(1),
        model(x, mask) - model.baseline,
        "the added values do not sum to the prediction minus the baseline",
    )


@torch.no_grad()
def prefixes_keep_their_values(subject: Subject) -> None:
    """Check that the values of a prefix are the prefix of the values."""
    model, x = subject.model(), subject.instances()
    values = model.added_values(x)
    for k in range(1, x.shape[1]):
        same(
            model.added_values(x[:, :k]),
            values[:, :k],
            f"the added values of the first {k} instances change when more follow",
        )


@torch.no_grad()
def differences_are_values(subject: Subject) -> None:
    """Check that f(first k) - f(first k-1) = v_k."""
    model, x = subject.model(), subject.instances()
    values = model.added_values(x)
    for k in range(1, x.shape[1] + 1):
        same(
            model(x[:, :k]) - model(x[:, : k - 1]),
            values[:, k - 1],
            f"the prediction does not change by the added value of instance {k}",
        )


@torch.no_grad()
def later_instances_do_not_matter(subject: Subject) -> None:
    """Check that values depend on earlier instances only."""
    model, x, other = subject.model(), subject.instances(), subject.instances(seed=1)
    values = model.added_values(x)
    for k in range(1, x.shape[1]):
        changed = torch.cat([x[:, :k], other[:, k:]], dim=1)
        same(
            model.added_values(changed)[:, :k],
            values[:, :k],
            f"the values of the first {k} instances depend on instances that come later",
        )


@torch.no_grad()
def empty_sets_are_worth_the_baseline(subject: Subject) -> None:
    """Check that an additive network predicts its baseline for an empty set."""
    model, x = subject.model(), subject.instances()
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[1] = False
    prediction, others = model(x, mask), mask[:, 0]
    same(
        prediction[1],
        model.baseline,
        "the prediction of an empty set in a batch is not the baseline",
    )
    same(prediction[others], model(x[others]), "an empty set changes the predictions of others")
    nothing = x[:, :0]
    baselines = model.baseline.expand_as(prediction)
    same(model(nothing), baselines, "the prediction of a batch of empty sets is not the baseline")
    require(
        model.added_values(nothing).shape == (len(x), 0, model.outputs),
        "a batch of empty sets has added values",
    )


@torch.no_grad()
def values_are_differences_of_prefixes(subject: Subject) -> None:
    """Check that values are differences between predictions of prefixes (not additive)."""
    model = subject.model()
    x, mask = subject.ragged()
    values = model.added_values(x, mask)
    for k, size in enumerate(SIZES):
        before = model.baseline[None]
        for i in range(size):
            now = model(x[k : k + 1, : i + 1])
            same(
                values[k : k + 1, i],
                now - before,
                f"the value of instance {i + 1} is not the difference of two prefixes",
            )
            before = now


@torch.no_grad()
def steps_equal_batches(subject: Subject) -> None:
    """Check that reading one instance at a time gives the values of the batch."""
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        model = subject.model(dtype=dtype)
        x = subject.instances().to(dtype)
        assert isinstance(model, SteppingModel | Ensemble)  # for the type checker
        state, steps = model.initial_state(len(x)), []
        for instance in x.unbind(1):
            value, state = model.step(instance, state)
            steps.append(value)
        same(
            torch.stack(steps, dim=1),
            model.added_values(x),
            f"step by step ({dtype}) the added values are not those of the batch",
            tolerance=tolerance,
        )


@torch.no_grad()
def refuses_other_states(subject: Subject) -> None:
    """Check that states of other sets, networks or precisions raise an InputError."""
    model, x = subject.model(), subject.instances()[:, 0]
    assert isinstance(model, SteppingModel | Ensemble)  # for the type checker
    state = model.initial_state(len(x))
    others = {
        "fewer sets": state[:1],
        "more sets": torch.cat([state, state]),
        "a larger network": torch.cat([state, state.new_zeros(len(x), 1)], dim=1),
        "another precision": state.float(),
    }
    if state.shape[1]:
        others["a smaller network"] = state[:, 1:]
    for what, other in others.items():
        refused(partial(model.step, x, other), f"the state of {what}")
