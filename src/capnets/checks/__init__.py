"""Contract checks for set networks.

Every network of the registry passes them. Run them on your own network:

>>> from capnets.models import build
>>> names = check_model(lambda: build("c-gru", in_features=3, hidden=8))
>>> "values_sum_to_prediction" in names
True

Each check is a function of a `Subject`, so that tests can run every pair of network and check. A
failed check raises a `CheckError` that says what is broken. `checks_for` lists the checks that
apply to a network: some are for additive networks, some for networks that read step by step.
"""

from __future__ import annotations

from collections.abc import Callable

from capnets.checks.gradients import gradients_reach_every_parameter, padding_has_no_gradient
from capnets.checks.persistence import (
    check_spec,
    copies_predict_the_same,
    repeats_itself,
    seeds_decide,
    weights_round_trip,
)
from capnets.checks.predictions import (
    batch_mates_do_not_matter,
    full_mask_is_no_mask,
    order_is_as_declared,
    padding_does_not_matter,
    refuses_empty_sets,
    refuses_wrong_input,
    sets_of_one,
    several_outputs_and_units,
    starts_near_the_mean,
)
from capnets.checks.subject import CheckError, Make, Subject
from capnets.checks.values import (
    differences_are_values,
    empty_sets_are_worth_the_baseline,
    later_instances_do_not_matter,
    prefixes_keep_their_values,
    refuses_other_states,
    steps_equal_batches,
    values_are_differences_of_prefixes,
    values_sum_to_prediction,
)
from capnets.models.base import SetModel

__all__ = [
    "CheckError",
    "Subject",
    "check_model",
    "check_spec",
    "checks_for",
]

Check = Callable[[Subject], None]

EVERY: tuple[Check, ...] = (
    several_outputs_and_units,
    starts_near_the_mean,
    sets_of_one,
    full_mask_is_no_mask,
    batch_mates_do_not_matter,
    padding_does_not_matter,
    order_is_as_declared,
    later_instances_do_not_matter,
    values_sum_to_prediction,
    refuses_wrong_input,
    gradients_reach_every_parameter,
    padding_has_no_gradient,
    weights_round_trip,
    copies_predict_the_same,
    repeats_itself,
    seeds_decide,
)
ADDITIVE: tuple[Check, ...] = (
    prefixes_keep_their_values,
    differences_are_values,
    empty_sets_are_worth_the_baseline,
)
NOT_ADDITIVE: tuple[Check, ...] = (values_are_differences_of_prefixes, refuses_empty_sets)
STEPPING: tuple[Check, ...] = (steps_equal_batches, refuses_other_states)


def checks_for(model: SetModel) -> tuple[Check, ...]:
    """Return the checks that apply to a network."""
    additive = ADDITIVE if model.additive else NOT_ADDITIVE
    return EVERY + additive + (STEPPING if model.steps else ())


def check_model(make: Make, *, feature_shape: tuple[int, ...] | None = None) -> list[str]:
    """Run all checks that apply to a network.

    Parameters
    ----------
    make
        Builds the network, with initial weights from torch's global generator.
    feature_shape
        Shape of one instance; by default the network's `in_features`. Required if `inputs` reads
        images.

    Returns
    -------
    names
        Names of the checks.

    Raises
    ------
    CheckError
        If a check fails.
    """
    subject = Subject.of(make, feature_shape=feature_shape)
    checks = checks_for(make())
    for check in checks:
        check(subject)
    return [check.__name__ for check in checks]
