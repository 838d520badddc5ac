r"""How pairs of instances interact: whether together they are worth more or less than apart.

.. math::
    I_{ij} = \sum_{S \subseteq N \setminus ij} \frac{|S|!\,(n - |S| - 2)!}{(n - 1)!}
             \bigl(f(S \cup ij) - f(S \cup i) - f(S \cup j) + f(S)\bigr)

The Shapley interaction index (Grabisch and Roubens 1999, https://doi.org/10.1007/s001820050125): a
second difference, averaged over what else may be there. Negative: the two are redundant, each makes
the other worth less. Positive: synergy. f reads real subsets, in the order of the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.shapley import all_subsets, check_exact
from capnets.explain.value import CHUNK, Worth, same_sizes
from capnets.models.base import SetModel
from capnets.sets import Array, Sets

__all__ = ["Interactions", "interactions"]


@dataclass(frozen=True, eq=False)
class Interactions:
    """The interaction of every pair of instances of some sets.

    Parameters
    ----------
    sets
        The set that each pair is from.
    first, second
        The positions of the two instances in it; first < second.
    values
        Their interaction, in the unit of the label.
    errors
        Standard errors, when estimated; else None.
    sizes
        How many instances each set has.
    exact
        Whether computed from all subsets.
    passes
        How many sets the network had to read.
    """

    sets: Array
    first: Array
    second: Array
    values: Array
    errors: Array | None
    sizes: Array
    exact: bool
    passes: int

    def matrix(self, k: int) -> Array:
        """The symmetric matrix of set k; 0 on the diagonal."""
        if not 0 <= k < len(self.sizes):
            raise InputError(f"set {k} does not exist: sets 0 to {len(self.sizes) - 1} were asked")
        out = np.zeros((int(self.sizes[k]),) * 2)
        own = self.sets == k
        out[self.first[own], self.second[own]] = self.values[own]
        return out + out.T

    def by_class(self, classes: Any) -> Array:
        """The mean interaction between instances of any two classes; NaN where none met.

        Parameters
        ----------
        classes
            The class of every instance, set after set.
        """
        classes = np.asarray(classes)
        if len(classes) != self.sizes.sum():
            raise InputError(
                f"{len(classes)} classes given, but there are {self.sizes.sum()} instances"
            )
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])[self.sets]
        a, b = classes[starts + self.first], classes[starts + self.second]
        many = int(classes.max()) + 1
        total, count = np.zeros((many, many)), np.zeros((many, many))
        np.add.at(total, (a, b), self.values)
        np.add.at(count, (a, b), 1.0)
        off = 1 - np.eye(many)
        with np.errstate(invalid="ignore"):
            return (total + off * total.T) / (count + off * count.T)


def interactions(
    model: SetModel,
    sets: Sets,
    *,
    samples: int | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Interactions:
    """The interaction of every pair of instances.

    Parameters
    ----------
    model
        Any set network.
    sets
        Whose pairs.
    samples
        None: exact, from all subsets, at 2^n passes for n instances. A number: estimated from so
        many random contexts per pair, at four passes each.
    seed
        What contexts are drawn from.
    output
        Which output, when there are several.
    chunk
        Most instances in one network batch.
    """
    if samples is None:
        check_exact(sets.sizes)
    elif samples < 1:
        raise InputError(f"at least 1 sample per pair is needed, not {samples}")
    worth = Worth(model, sets, output=output, chunk=chunk)
    generator = np.random.default_rng(seed)
    parts: list[tuple[Array, Array, Array, Array, Array]] = []
    for group in _groups(worth, samples):
        size = int(sets.sizes[group[0]])
        first, second = np.triu_indices(size, k=1)
        if samples is None:
            values = _exact(worth, group, first, second)
            errors = np.full_like(values, np.nan)
        else:
            values, errors = _sampled(worth, group, first, second, samples, generator)
        many = len(group)
        owner = np.repeat(group, len(first))
        parts.append(
            (owner, np.tile(first, many), np.tile(second, many), values.ravel(), errors.ravel())
        )
    owner, one, two, found, errors = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(owner, kind="stable")
    return Interactions(
        owner[order], one[order], two[order], found[order],
        errors=None if samples is None or samples < 2 else errors[order],
        sizes=sets.sizes, exact=samples is None, passes=worth.passes,
    )  # fmt: skip


def _groups(worth: Worth, samples: int | None) -> Iterator[Array]:
    sizes = worth.sets.sizes
    if not (sizes > 1).any():
        raise InputError("no set has two instances: there are no pairs to look at")
    longest = int(sizes.max())
    subsets = 2**longest if samples is None else 2 * longest * (longest - 1) * samples
    most = 4 * worth.chunk // (longest * subsets)
    for group in same_sizes(sizes, most=most):
        if sizes[group[0]] > 1:
            yield group


def _exact(worth: Worth, group: Array, first: Array, second: Array) -> Array:
    size = int(worth.sets.sizes[group[0]])
    members = all_subsets(size)
    table = worth.of_subsets(group, members)
    numbers, counts = np.arange(2**size), members.sum(1)
    weights = np.array([1 / ((size - 1) * math.comb(size - 2, k)) for k in range(size - 1)])
    values = np.empty((len(group), len(first)))
    for p, (i, j) in enumerate(zip(first, second, strict=True)):
        a, b = 1 << int(i), 1 << int(j)
        s = numbers[numbers & (a | b) == 0]
        second_difference = table[:, s | a | b] - table[:, s | a] - table[:, s | b] + table[:, s]
        values[:, p] = second_difference @ weights[counts[s]]
    return values


def _sampled(
    worth: Worth, group: Array, first: Array, second: Array, samples: int, generator: Any
) -> tuple[Array, Array]:
    size = int(worth.sets.sizes[group[0]])
    pairs = len(first)
    context = random_contexts(generator, (len(group), pairs, samples), size, first, second)
    values = second_differences(worth, group, context, first, second)
    deviation = values.std(-1, ddof=1) if samples > 1 else np.zeros((len(group), pairs))
    return values.mean(-1), deviation / math.sqrt(samples)


def random_contexts(
    generator: np.random.Generator, shape: tuple[int, ...], size: int, first: Array, second: Array
) -> Array:
    """Random subsets without the two instances of a pair: all sizes equally likely.

    Parameters
    ----------
    shape
        Sets x pairs x samples.
    first, second
        The pair's positions, one of each per pair.
    """
    keys = generator.random((*shape, size))
    pairs = np.arange(len(first))
    keys[:, pairs, :, first] = 2.0  # behind all others: never among the first size - 2
    keys[:, pairs, :, second] = 2.0
    rank = keys.argsort(-1).argsort(-1)
    return rank < generator.integers(size - 1, size=shape)[..., None]


def second_differences(
    worth: Worth, group: Array, context: Array, first: Array, second: Array
) -> Array:
    """f(S + i + j) - f(S + i) - f(S + j) + f(S) for contexts S (sets x pairs x samples x size)."""
    four = np.repeat(context[..., None, :], 4, axis=-2)
    pairs = np.arange(len(first))
    four[:, pairs, :, :2, first] = True
    four[:, pairs, :, 0, second] = True
    four[:, pairs, :, 2, second] = True
    table = worth.of_subsets(group, four.reshape(len(group), -1, context.shape[-1]))
    table = table.reshape(*context.shape[:-1], 4)
    return table[..., 0] - table[..., 1] - table[..., 2] + table[..., 3]
