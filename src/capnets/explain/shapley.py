r"""Shapley values of the set function that a network has learned.

.. math::
    \phi_i = \sum_{S \subseteq N \setminus i} \frac{|S|!\,(n - |S| - 1)!}{n!}
             \bigl(f(S \cup i) - f(S)\bigr)

f(S) is what the network predicts when it reads the instances of S alone, in the order in which the
set lists them; f of nothing is 0. So the values exist for every network, additive or not, and sum
to the prediction of the set as given. For a network whose answer depends on order they are Shapley
values *for this order of reading*; `added_values(…, orders=K)` averages over orders instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from capnets.errors import InputError
from capnets.explain.added import about, added_values
from capnets.explain.explanation import Explanation
from capnets.explain.streaming_mean import Mean
from capnets.explain.value import CHUNK, Worth, same_sizes
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders

__all__ = ["EXACT_LIMIT", "all_subsets", "check_exact", "from_subsets", "shapley_values"]

METHOD = "Shapley values"
EXACT_LIMIT = 16
"""Largest set whose values are computed from all subsets: 65,536 passes."""


def shapley_values(
    model: SetModel,
    sets: Sets,
    *,
    orders: int | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Explanation:
    """Shapley values: exact from all subsets, or estimated from random orders of joining.

    Parameters
    ----------
    model
        Any set network.
    sets
        What to explain.
    orders
        None: exact, at 2^n passes for n instances. A number: estimated from so many random orders
        of joining (in pairs of an order and its reverse), at n passes each; at one pass each when
        the order of reading cannot matter to the network.
    seed
        What random orders are drawn from.
    output
        Which output to explain, when there are several.
    chunk
        Most instances in one network batch.
    """
    if orders is None:
        check_exact(sets.sizes)
    drawn = Orders() if orders is None else Orders.random(orders, seed=seed)
    if not drawn.exact and not model.ordered:
        found = added_values(model, sets, orders=drawn, output=output, chunk=chunk)
        return replace(found, method=METHOD, spreads=None, prediction_spreads=None)
    began = time.perf_counter()
    worth = Worth(model, sets, output=output, chunk=chunk)
    values, errors = (_exact(worth), None) if drawn.exact else _sampled(worth, drawn)
    return Explanation(
        method=METHOD,
        values=values,
        offsets=sets.offsets,
        predictions=worth.of(sets.index, sets.offsets),
        baselines=np.zeros(len(sets)),
        orders=drawn,
        exact=drawn.exact,
        passes=worth.passes,
        seconds=time.perf_counter() - began,
        errors=errors,
        **about(sets, worth.output),
    )


def check_exact(sizes: Array) -> None:
    """Refuse sets that are too large for all subsets; say the cost and what to do."""
    longest = int(sizes.max(initial=0))
    if longest > EXACT_LIMIT:
        raise InputError(
            f"set {int(np.argmax(sizes))} has {longest} instances: exact values need all "
            f"2^{longest} = {2**longest:,} subsets, one network pass each (the limit is "
            f"{EXACT_LIMIT} instances); estimate them instead, with orders=32: "
            f"{32 * longest:,} passes"
        )


def all_subsets(size: int) -> Array:
    """Subsets x size: row r holds the subset whose bits make the number r.

    >>> all_subsets(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)


def from_subsets(worth: Array) -> Array:
    """Shapley values (sets x size) from the worth of all subsets (sets x 2^size).

    >>> from_subsets(np.array([[0.0, 7.0, 7.0, 7.0]])).tolist()  # two of the same: half each
    [[3.5, 3.5]]
    """
    size = worth.shape[1].bit_length() - 1
    numbers = np.arange(worth.shape[1])
    counts = all_subsets(size).sum(1)
    values = np.empty((len(worth), size))
    for i in range(size):
        without = numbers[numbers >> i & 1 == 0]
        weights = [1 / (size * math.comb(size - 1, k)) for k in range(size)]
        gains = worth[:, without | 1 << i] - worth[:, without]
        values[:, i] = gains @ np.array(weights)[counts[without]]
    return values


def _exact(worth: Worth) -> Array:
    sets = worth.sets
    values = np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    # A few full network batches at a time.
    for group in same_sizes(sets.sizes, most=4 * worth.chunk // (longest * 2**longest)):
        size = int(sets.sizes[group[0]])
        table = worth.of_subsets(group, all_subsets(size))
        values[sets.offsets[group][:, None] + np.arange(size)] = from_subsets(table)
    return values


def _sampled(worth: Worth, orders: Orders) -> tuple[Array, Array | None]:
    mean = Mean()
    for block in orders.blocks(worth.sets):
        mean.add([_joining(worth, order) for order in block])
    return mean.mean, mean.error


def _joining(worth: Worth, order: Array) -> Array:
    """What each instance adds when instances join in the given order.

    The instances that have joined are read in the order of the set, not in that of joining.
    """
    sets = worth.sets
    values = np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    for group in same_sizes(sets.sizes, most=4 * worth.chunk // longest**2):
        size = int(sets.sizes[group[0]])
        places = sets.offsets[group][:, None] + np.arange(size)
        joined = np.argsort(order[places], axis=1)  # when instance i joined
        members = joined[:, None, :] <= np.arange(size)[:, None]
        gains = np.diff(worth.of_subsets(group, members), axis=1, prepend=0.0)
        values[places] = np.take_along_axis(gains, joined, axis=1)
    return values
