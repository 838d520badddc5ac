"""What is promised of added values."""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from capnets.checks.subject import SIZES, Subject, refused, require, same

__all__ = [
    "Stepping",
    "differences_are_values",
    "empty_sets_are_worth_nothing",
    "later_instances_do_not_matter",
    "prefixes_keep_their_values",
    "refuses_other_states",
    "steps_equal_batches",
    "values_are_differences_of_prefixes",
    "values_sum_to_prediction",
]


@runtime_checkable
class Stepping(Protocol):
    """A network that can also read one instance at a time."""

    def initial_state(self, sets: int = 1) -> Tensor:
        """The state before the first instance."""

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One instance per set in; its added value and the new state out."""


@torch.no_grad()
def values_sum_to_prediction(subject: Subject) -> None:
    """The added values of a set sum to its prediction."""
    model = subject.model()
    x, mask = subject.ragged()
    same(
        model.added_values(x, mask).sum(1),
        model(x, mask),
        "the added values do not sum to the prediction",
    )


@torch.no_grad()
def prefixes_keep_their_values(subject: Subject) -> None:
    """The values of a prefix are the prefix of the values."""
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
    """f(first k) - f(first k-1) = v_k."""
    model, x = subject.model(), subject.instances()
    values = model.added_values(x)
    for k in range(1, x.shape[1] + 1):
        same(
            model(x[:, :k]) - model(x[:, : k - 1]),
            values[:, k - 1],
            f"the prediction does not grow by the added value of instance {k}",
        )


@torch.no_grad()
def later_instances_do_not_matter(subject: Subject) -> None:
    """Values look back only: other instances later on leave the earlier values as they were."""
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
def empty_sets_are_worth_nothing(subject: Subject) -> None:
    """An additive network predicts 0 for an empty set, and goes on with the others."""
    model, x = subject.model(), subject.instances()
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[1] = False
    prediction, others = model(x, mask), mask[:, 0]
    require(not bool(prediction[1].any()), "an empty set in a batch is not predicted as 0")
    same(prediction[others], model(x[others]), "an empty set changes the predictions of others")
    nothing = x[:, :0]
    same(model(nothing), torch.zeros_like(prediction), "a batch of empty sets is not 0")
    require(
        model.added_values(nothing).shape == (len(x), 0, model.outputs),
        "a batch of empty sets has added values",
    )


@torch.no_grad()
def values_are_differences_of_prefixes(subject: Subject) -> None:
    """Without additivity, a value is the difference between the predictions of two prefixes."""
    model = subject.model()
    x, mask = subject.ragged()
    values = model.added_values(x, mask)
    for k, size in enumerate(SIZES):
        before = torch.zeros(1, model.outputs, dtype=torch.float64)
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
    """Reading one instance at a time gives what reading all at once gives."""
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        model = subject.model(dtype=dtype)
        x = subject.instances().to(dtype)
        require(isinstance(model, Stepping), "it has no step and no initial_state")
        assert isinstance(model, Stepping)  # says the same to the type checker
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
    """The state of other sets, of another network or precision gets an error for people."""
    model, x = subject.model(), subject.instances()[:, 0]
    require(isinstance(model, Stepping), "it has no step and no initial_state")
    assert isinstance(model, Stepping)  # says the same to the type checker
    state = model.initial_state(len(x))
    for what, other in (
        ("fewer sets", state[:1]),
        ("more sets", torch.cat([state, state])),
        ("a smaller network", state[:, 1:]),
        ("a larger network", torch.cat([state, state], dim=1)),
        ("another precision", state.float()),
    ):
        refused(partial(model.step, x, other), f"the state of {what}")
