r"""Compute interactions between pairs of instances: redundancy and synergy.

.. math::
    I_{ij} = \sum_{S \subseteq N \setminus ij} \frac{|S|!\,(n - |S| - 2)!}{(n - 1)!}
             \bigl(f(S \cup ij) - f(S \cup i) - f(S \cup j) + f(S)\bigr)

The Shapley interaction index (Grabisch and Roubens 1999, https://doi.org/10.1007/s001820050125): a
second difference, averaged over the other instances that may be present. Negative values mean
redundancy: each instance lowers the value of the other. Positive values mean synergy. f reads real
subsets, in the order of the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.shapley import all_subsets, check_exact
from capnets.explain.subject import Source, resolve
from capnets.explain.value import SetValue, groups_of_equal_size
from capnets.sets import Array, offsets_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Interactions", "interactions"]


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """The interaction of every pair of instances of some sets.

    Parameters
    ----------
    set_index
        The index of the set of each pair.
    first, second
        The positions of the two instances in the set; first < second.
    values
        Their interaction, in the unit of the label.
    errors
        Standard errors of estimated interactions; else None.
    sizes
        The number of instances of each set.
    exact
        True if computed from all subsets.
    passes
        Number of sets that the network read.
    """

    set_index: Array
    first: Array
    second: Array
    values: Array
    errors: Array | None
    sizes: Array
    exact: bool
    passes: int

    def __repr__(self) -> str:
        quality = "exact" if self.exact else "estimated"
        return f"<Interactions: {len(self.values)} pairs in {len(self.sizes)} sets, {quality}>"

    def _repr_html_(self) -> str:
        return str(self.to_frame().head(20).to_html(index=False, border=0))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per pair, strongest interactions first."""
        import pandas as pd

        columns = {
            "set": self.set_index, "first": self.first, "second": self.second,
            "interaction": self.values, "error": self.errors,
        }  # fmt: skip
        frame = pd.DataFrame({k: v for k, v in columns.items() if v is not None})
        return frame.iloc[np.argsort(-np.abs(self.values), kind="stable")]

    def matrix(self, k: int) -> Array:
        """Return the symmetric matrix of set k, with 0 on the diagonal."""
        if not 0 <= k < len(self.sizes):
            raise InputError(f"set {k} does not exist: there are sets 0 to {len(self.sizes) - 1}")
        out = np.zeros((int(self.sizes[k]),) * 2)
        own = self.set_index == k
        out[self.first[own], self.second[own]] = self.values[own]
        return out + out.T

    def by_class(self, classes: Any) -> Array:
        """Return the mean interaction between instances of any two classes.

        The entry of two classes that never met is NaN.

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
        starts = offsets_of(self.sizes)[self.set_index]
        a, b = classes[starts + self.first], classes[starts + self.second]
        many = int(classes.max()) + 1
        total, count = np.zeros((many, many)), np.zeros((many, many))
        np.add.at(total, (a, b), self.values)
        np.add.at(count, (a, b), 1.0)
        off = 1 - np.eye(many)
        with np.errstate(invalid="ignore"):
            return (total + off * total.T) / (count + off * count.T)


def interactions(
    source: Source,
    X: Any,
    *,
    samples: int | None = None,
    seed: int = 0,
    output: int | str | None = None,
) -> Interactions:
    """Compute the interaction of every pair of instances.

    Parameters
    ----------
    source, X, output
        As in `explain`.
    samples
        None: exact, from all subsets, at 2^n passes for n instances; from one pass if the network
        has them in closed form (`c-pairs`). A number: estimated from that
        many random contexts per pair, at four passes each.
    seed
        Random seed of the contexts.
    """
    value = resolve(source, X, output).value()
    sets = value.sets
    closed = samples is None and value.model.closed_form
    if samples is None and not closed:
        check_exact(sets.sizes)
    elif samples is not None and samples < 1:
        raise InputError(f"at least 1 sample per pair is needed, not {samples}")
    generator = np.random.default_rng(seed)
    parts: list[tuple[Array, Array, Array, Array, Array]] = []
    for group in _groups(value, samples):
        size = int(sets.sizes[group[0]])
        first, second = np.triu_indices(size, k=1)
        if closed:
            values = value.interactions(group)[:, first, second]
            errors = np.full_like(values, np.nan)
        elif samples is None:
            values = _exact(value, group, first, second)
            errors = np.full_like(values, np.nan)
        else:
            values, errors = _sampled(value, group, first, second, samples, generator)
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
        sizes=sets.sizes, exact=samples is None, passes=value.passes,
    )  # fmt: skip


def _groups(value: SetValue, samples: int | None) -> Iterator[Array]:
    sizes = value.sets.sizes
    if not (sizes > 1).any():
        raise InputError("no set has two instances: there are no pairs")
    longest = int(sizes.max())
    subsets = 2**longest if samples is None else 2 * longest * (longest - 1) * samples
    most = 4 * value.chunk // (longest * subsets)
    for group in groups_of_equal_size(sizes, most=most):
        if sizes[group[0]] > 1:
            yield group


def _exact(value: SetValue, group: Array, first: Array, second: Array) -> Array:
    size = int(value.sets.sizes[group[0]])
    members = all_subsets(size)
    table = value.predict_subsets(group, members)
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
    value: SetValue, group: Array, first: Array, second: Array, samples: int, generator: Any
) -> tuple[Array, Array]:
    size = int(value.sets.sizes[group[0]])
    pairs = len(first)
    context = random_contexts(generator, (len(group), pairs, samples), size, first, second)
    values = second_differences(value, group, context, first, second)
    deviation = values.std(-1, ddof=1) if samples > 1 else np.zeros((len(group), pairs))
    return values.mean(-1), deviation / math.sqrt(samples)


def random_contexts(
    generator: np.random.Generator, shape: tuple[int, ...], size: int, first: Array, second: Array
) -> Array:
    """Draw random subsets without the two instances of a pair, uniform over subset sizes.

    Parameters
    ----------
    shape
        Sets x pairs x samples.
    first, second
        The positions of the two instances of each pair.
    """
    keys = generator.random((*shape, size))
    pairs = np.arange(len(first))
    keys[:, pairs, :, first] = 2.0  # last in the ranking: never among the first size - 2
    keys[:, pairs, :, second] = 2.0
    rank = keys.argsort(-1).argsort(-1)
    return rank < generator.integers(size - 1, size=shape)[..., None]


def second_differences(
    value: SetValue, group: Array, context: Array, first: Array, second: Array
) -> Array:
    """Return f(S+i+j) - f(S+i) - f(S+j) + f(S) for contexts S (sets x pairs x samples x size)."""
    four = np.repeat(context[..., None, :], 4, axis=-2)
    pairs = np.arange(len(first))
    four[:, pairs, :, :2, first] = True
    four[:, pairs, :, 0, second] = True
    four[:, pairs, :, 2, second] = True
    table = value.predict_subsets(group, four.reshape(len(group), -1, context.shape[-1]))
    table = table.reshape(*context.shape[:-1], 4)
    return table[..., 0] - table[..., 1] - table[..., 2] + table[..., 3]
