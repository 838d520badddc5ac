"""Quality of a trained network on the sets of a problem."""

from __future__ import annotations

from typing import Any

from capnets import metrics
from capnets.evaluate import added_values, order_sensitivity
from capnets.learn.averaging import mean_prediction
from capnets.learn.problem import Problem
from capnets.learn.target import Target
from capnets.models import SetModel
from capnets.sets import Sets
from capnets.sets.orders import Orders

__all__ = ["measure_problem", "measure_sets"]


def measure_sets(
    model: SetModel, sets: Sets, target: Target, *, orders: int = 1
) -> dict[str, float]:
    """Measure predictions on labelled sets, averaged over orders."""
    raw = mean_prediction(model, sets, Orders.averaging(orders))
    return target.measure(sets.y, raw)


def measure_problem(
    model: SetModel, problem: Problem, *, orders: int = 1, seed: int = 0
) -> dict[str, Any]:
    """Measure a network on the validation and test sets of a problem.

    Without validation sets, the training sets are measured. If exact added values are known, labels
    are whole numbers: the error of added values and the accuracy of rounded predictions are
    measured too. On set tasks, networks that depend on the order are also measured under random
    orders, unless predictions average orders.
    """
    first = {"train": problem.train} if problem.valid is None else {"valid": problem.valid}
    result: dict[str, Any] = {}
    for name, sets in {**first, **problem.tests}.items():
        raw = mean_prediction(model, sets, Orders.averaging(orders))
        result[name] = problem.target.measure(sets.y, raw)
        if problem.expected is not None:
            result[name]["accuracy"] = metrics.accuracy(sets.y, raw[:, 0])
            error = metrics.added_value_error(problem.expected(sets), added_values(model, sets))
            result[name]["added_value_error"] = error
    if model.ordered and orders == 1 and problem.tests and "task" in problem.origin:
        test = next(iter(problem.tests.values()))
        result["orders"] = order_sensitivity(model, test, seed=seed)
    return result
