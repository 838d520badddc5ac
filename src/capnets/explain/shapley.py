r"""Compute Shapley values of the set function that a network has learned.

.. math::
    \phi_i = \sum_{S \subseteq N \setminus i} \frac{|S|!\,(n - |S| - 1)!}{n!}
             \bigl(f(S \cup i) - f(S)\bigr)

f(S) is the prediction for the instances of S alone, read in the order of the set; f of the empty
set is the baseline. The values exist for every network, additive or not, and sum to the prediction
minus the baseline. If the prediction depends on the order, they are Shapley values *for this
order*; `explain(…, orders=K)` averages over orders instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.added import about_sets, caution, common_sizes, explain_added
from capnets.explain.explanation import Explanation
from capnets.explain.streaming_mean import StreamingMean
from capnets.explain.subject import Source, resolve
from capnets.explain.value import CHUNK, SetValue, groups_of_equal_size
from capnets.models.base import SetModel
from capnets.runs import Run
from capnets.sets import Array
from capnets.sets.orders import Orders

__all__ = ["EXACT_LIMIT", "all_subsets", "check_exact", "from_subsets", "shapley_values"]

METHOD = "Shapley values"
#: Largest set whose values are computed from all subsets (65,536 passes).
EXACT_LIMIT = 16


def shapley_values(
    source: Source,
    X: Any,
    *,
    orders: int | None = None,
    seed: int = 0,
    output: int | str | None = None,
    chunk: int = CHUNK,
) -> Explanation:
    """Compute Shapley values from all subsets, or estimate them from random orders of joining.

    Parameters
    ----------
    source, X, seed, output, chunk
        As in `explain`.
    orders
        None: exact, at 2^n passes for n instances; from one pass if the network has them in closed
        form (`c-pairs`), whatever n. A number: estimated from that many random orders
        of joining, in pairs of an order and its reverse. Each costs n passes, or one pass if the
        prediction does not depend on the order.
    """
    if not isinstance(source, SetModel | Run) and hasattr(source, "explain"):
        found: Explanation = source.explain(
            X, method="shapley", orders=orders, seed=seed, output=output
        )
        return found  # with the names and classes that an estimator knows
    subject = resolve(source, X, output)
    model, sets = subject.model, subject.sets
    closed = orders is None and model.closed_form
    if orders is None and not closed:
        check_exact(sets.sizes)
    drawn = Orders() if orders is None else Orders.random(orders, seed=seed)
    if not drawn.exact and not model.ordered:
        found = explain_added(model, sets, orders=drawn, output=subject.output, chunk=chunk)
        return replace(found, method=METHOD, spreads=None, prediction_spreads=None)
    began = time.perf_counter()
    value = subject.value(chunk=chunk)
    errors = None
    if closed:
        values = value.shapley_values(sets.index, sets.offsets)
    else:
        values, errors = (_exact(value), None) if drawn.exact else _sampled(value, drawn)
    return Explanation(
        method=METHOD,
        values=values,
        offsets=sets.offsets,
        predictions=value.predict(sets.index, sets.offsets),
        baselines=value.baselines,
        orders=drawn,
        exact=drawn.exact,
        passes=value.passes,
        seconds=time.perf_counter() - began,
        errors=errors,
        caution=caution(model, common_sizes(sets)),
        **about_sets(sets, value.output),
    )


def check_exact(sizes: Array) -> None:
    """Raise an error if a set has too many instances to evaluate all of its subsets."""
    longest = int(sizes.max(initial=0))
    if longest > EXACT_LIMIT:
        subsets = f" = {2**longest:,}" if longest <= 64 else ""
        raise InputError(
            f"set {int(np.argmax(sizes))} has {longest} instances: exact values need all "
            f"2^{longest}{subsets} subsets, one network pass each (the limit is "
            f"{EXACT_LIMIT} instances); estimate them instead, with orders=32: "
            f"{32 * longest:,} passes"
        )


def all_subsets(size: int) -> Array:
    """Return subsets x size; row r holds the subset whose bits form the number r.

    >>> all_subsets(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)


def from_subsets(values: Array) -> Array:
    """Return Shapley values (sets x size) from the values of all subsets (sets x 2^size).

    >>> from_subsets(np.array([[0.0, 7.0, 7.0, 7.0]])).tolist()  # two equal instances: half each
    [[3.5, 3.5]]
    """
    size = values.shape[1].bit_length() - 1
    numbers = np.arange(values.shape[1])
    counts = all_subsets(size).sum(1)
    shares = np.empty((len(values), size))
    weights = np.array([1 / (size * math.comb(size - 1, k)) for k in range(size)])
    for i in range(size):
        without = numbers[numbers >> i & 1 == 0]
        gains = values[:, without | 1 << i] - values[:, without]
        shares[:, i] = gains @ weights[counts[without]]
    return shares


def _exact(value: SetValue) -> Array:
    sets = value.sets
    values = np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    # A few full network batches at a time.
    most = 4 * value.chunk // (longest * 2**longest)
    for group in groups_of_equal_size(sets.sizes, most=most):
        size = int(sets.sizes[group[0]])
        table = value.predict_subsets(group, all_subsets(size))
        values[sets.offsets[group][:, None] + np.arange(size)] = from_subsets(table)
    return values


def _sampled(value: SetValue, orders: Orders) -> tuple[Array, Array | None]:
    mean = StreamingMean()
    for block in orders.blocks(value.sets):
        mean.add([_joining(value, order) for order in block])
    return mean.mean, mean.error


def _joining(value: SetValue, order: Array) -> Array:
    """Return what each instance adds when instances join in the given order.

    The instances that have joined are read in the order of the set, not in that of joining.
    """
    sets = value.sets
    values = np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    for group in groups_of_equal_size(sets.sizes, most=4 * value.chunk // longest**2):
        size = int(sets.sizes[group[0]])
        places = sets.offsets[group][:, None] + np.arange(size)
        joined = np.argsort(order[places], axis=1)  # when instance i joined
        members = joined[:, None, :] <= np.arange(size)[:, None]
        table = value.predict_subsets(group, members)
        gains = np.diff(table, axis=1, prepend=value.baselines[group][:, None])
        values[places] = np.take_along_axis(gains, joined, axis=1)
    return values
