"""Explain sets with one call, whatever the method and the source."""

from __future__ import annotations

from typing import Any

from capnets.errors import InputError, unknown
from capnets.explain.added import explain_added, with_caution
from capnets.explain.explanation import Explanation
from capnets.explain.shapley import shapley_values
from capnets.explain.subject import Explainable, Source, resolve
from capnets.explain.value import CHUNK
from capnets.runs import Run
from capnets.sets.orders import Orders

__all__ = ["METHODS", "explain"]

METHODS = {
    "added": "added values, in the given order or averaged over orders",
    "shapley": "Shapley values by real removal; exact unless a number of orders is given",
}


def explain(
    source: Source,
    X: Any,
    *,
    method: str = "added",
    orders: Orders | int | None = None,
    seed: int = 0,
    output: int | str | None = None,
    chunk: int = CHUNK,
) -> Explanation:
    """Explain predictions: compute the contribution of each instance to its set.

    Parameters
    ----------
    source
        A network, a run or a fitted estimator. For a network that is not additive, added values are
        differences between the predictions of prefixes.
    X
        The sets to explain; for an estimator anything that it reads.
    method
        `added` or `shapley`.
    orders
        For `added`: None for the given order (for an estimator: the orders of its predictions), a
        number of random orders, or any `Orders`. For `shapley`: None for exact values, or a number
        of random orders of joining.
    seed
        Random seed of the orders.
    output
        The output to explain, by index or name. Required if there are several.
    chunk
        Maximum number of instances in one network batch; bounds the memory.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if isinstance(source, Explainable) and hasattr(source, "explain"):
        explained: Explanation = source.explain(
            X, method=method, orders=orders, seed=seed, output=output
        )
        return explained
    subject = resolve(source, X, output)
    if method == "shapley" and isinstance(orders, Orders):
        raise InputError("method='shapley' takes a number of orders, not Orders")
    compute: Any = explain_added if method == "added" else shapley_values
    found: Explanation = compute(
        subject.model, subject.sets, orders=orders, seed=seed, output=subject.output, chunk=chunk
    )
    return with_caution(
        found, subject.model, source.config.sizes if isinstance(source, Run) else None
    )
