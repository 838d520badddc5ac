"""Set functions: the label of a set of classes and the added value of each instance.

The label depends on the classes in a set, not on their order. The *added value* of an instance does
depend on the order: v_i = f(first i instances) - f(first i - 1 instances).

In the formulas n_c is the number of instances of class c, [A] is 1 if A holds and 0 otherwise, and
T(m) = m (m + 1) / 2 is the m-th triangular number. Sources and figures: Zopf, "Effective and
Interpretable Information Aggregation with Capacity Networks", AAAI 2022.
"""
# ruff: noqa: D102 - SetFunction documents the methods.

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.metadata import entry_points
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from capnets.errors import unknown
from capnets.tasks.counting import CLASSES, Floats, Integers, counts, earlier, firsts, owners
from capnets.tasks.distributions import Distribution, Ways, of_blocks, of_products

__all__ = [
    "FUNCTIONS", "PAIRS", "ClosedForms", "Product", "SetFunction", "TriangularCount", "UniqueCount",
    "UniqueSum", "UniqueSumSynergy", "WeightedTriangular", "find_function",
]  # fmt: skip

PAIRS = ((0, 6), (1, 3), (2, 9), (4, 7), (5, 8))
"""Pairs of classes with a bonus: the only ones that fit the paper's histogram of US+S."""

_NUMBERS = np.arange(CLASSES)
_PARTNER = np.array([b for _, b in sorted([*PAIRS, *((b, a) for a, b in PAIRS)])])


class SetFunction(ABC):
    """A function of the classes in a set, with the exact added value of every instance.

    A new function needs `value` and `added_values`. Derive from `ClosedForms` to also provide
    Shapley values and label distributions.
    """

    name: ClassVar[str]
    short: ClassVar[str]
    source: ClassVar[str]
    """Default source of images."""
    formula: ClassVar[str]

    @abstractmethod
    def value(self, classes: Integers, offsets: Integers) -> Floats:
        """Return the label of every set (float64)."""

    @abstractmethod
    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        """Return the added value of each instance, in the given order.

        The values of a set sum to its label. The first instance adds the label of the set that
        contains only this instance.
        """


class ClosedForms(SetFunction):
    """A set function whose Shapley values and label distribution have closed forms."""

    @abstractmethod
    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        """Return the added value of each instance, averaged over all orders of its set."""

    @abstractmethod
    def distribution(self, size: int) -> Distribution:
        """Return the exact distribution of the label of `size` instances with uniform classes."""


class BlockFunction(ClosedForms):
    """A sum over blocks of classes; a block is one class or a pair."""

    blocks: ClassVar[tuple[tuple[int, ...], ...]] = tuple((c,) for c in range(CLASSES))

    @abstractmethod
    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        """Count the sequences of `count` instances of a block's classes by their value."""

    def distribution(self, size: int) -> Distribution:
        return of_blocks(self.ways, blocks=self.blocks, size=size)


@final
class UniqueSum(BlockFunction):
    r"""Every class counts once: $f = \sum_c c\,[n_c > 0]$ (subadditive).

    >>> UniqueSum().added_values(np.array([7, 9, 7, 2]), np.array([0, 4])).tolist()
    [7.0, 9.0, 0.0, 2.0]
    """

    name, short, source = "unique-sum", "US", "mnist"
    formula = "sum of c over the classes c present"

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        return _total((counts(classes, offsets) > 0) * _NUMBERS)

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        return np.where(earlier(classes, offsets) == 0, classes, 0.0)

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        return classes / _own(counts(classes, offsets), classes, offsets)

    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        return {block[0] if count else 0: 1}


@final
class WeightedTriangular(BlockFunction):
    r"""The m-th instance of class c adds m times c: $f = \sum_c c\,T(n_c)$ (superadditive).

    >>> WeightedTriangular().added_values(np.array([7, 9, 7, 2]), np.array([0, 4])).tolist()
    [7.0, 9.0, 14.0, 2.0]
    """

    name, short, source = "weighted-triangular", "WTri", "mnist"
    formula = "sum over c of c T(n_c), T(m) = m (m + 1) / 2"

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        return _total(_triangular(counts(classes, offsets)) * _NUMBERS)

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        return classes * (earlier(classes, offsets) + 1.0)

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        return 0.5 * classes * (_own(counts(classes, offsets), classes, offsets) + 1)

    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        return {block[0] * count * (count + 1) // 2: 1}


@final
class UniqueSumSynergy(BlockFunction):
    r"""Unique Sum and a bonus: $f = \sum_c c\,[n_c>0] + 10\sum_{\{a,b\}\in P}[n_a>0][n_b>0]$.

    P is `PAIRS`. Subadditive within a class, superadditive between the classes of a pair.

    >>> UniqueSumSynergy().added_values(np.array([7, 9, 7, 2]), np.array([0, 4])).tolist()
    [7.0, 9.0, 0.0, 12.0]
    """

    name, short, source = "unique-sum-synergy", "US+S", "mnist"
    formula = "sum of c over the classes c present, and 10 for each pair of P present"
    blocks = PAIRS

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        present = counts(classes, offsets) > 0
        paired = present & present[:, _PARTNER]  # holds both classes of a pair: 5 for each
        return _total(present * _NUMBERS + 5 * paired)

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        partner = firsts(classes, offsets)[owners(offsets), _PARTNER[classes]]
        bonus = np.where(partner < np.arange(len(classes)), 10.0, 0.0)
        return np.where(earlier(classes, offsets) == 0, classes + bonus, 0.0)

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        r"""Return $c/n_c + 10\,n_d / (n_c (n_c + n_d))$, where d is the partner of c.

        An instance earns the bonus of a pair if it is the first of its class and follows one of the
        partner class. The partner comes first with probability n_d / (n_c + n_d).
        """
        table = counts(classes, offsets)
        own, partner = _own(table, classes, offsets), _own(table, _PARTNER[classes], offsets)
        return (classes + 10 * partner / (own + partner)) / own

    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        a, b = block
        return {0: 1} if not count else {a: 1, b: 1, a + b + 10: 2**count - 2}


@final
class UniqueCount(BlockFunction):
    r"""The number of distinct classes: $f = \sum_c [n_c > 0]$.

    >>> UniqueCount().added_values(np.array([7, 9, 7, 2]), np.array([0, 4])).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """

    name, short, source = "unique-count", "UC", "fashion-mnist"
    formula = "number of classes present"

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        return _total(counts(classes, offsets) > 0)

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        return np.where(earlier(classes, offsets) == 0, 1.0, 0.0)

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        return 1.0 / _own(counts(classes, offsets), classes, offsets)

    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        return {int(count > 0): 1}


@final
class TriangularCount(BlockFunction):
    r"""The m-th instance of a class adds m: $f = \sum_c T(n_c)$.

    >>> TriangularCount().added_values(np.array([7, 9, 7, 2]), np.array([0, 4])).tolist()
    [1.0, 1.0, 2.0, 1.0]
    """

    name, short, source = "triangular-count", "TriC", "fashion-mnist"
    formula = "sum over c of T(n_c), T(m) = m (m + 1) / 2"

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        return _total(_triangular(counts(classes, offsets)))

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        return (earlier(classes, offsets) + 1).astype(np.float64)

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        return 0.5 * (_own(counts(classes, offsets), classes, offsets) + 1)

    def ways(self, block: tuple[int, ...], count: int) -> Ways:
        return {count * (count + 1) // 2: 1}


@final
class Product(ClosedForms):
    r"""The product of the classes: $f = \prod_i c_i$; 1 for the empty set.

    The first instance adds its whole class, so that the added values sum to the product.
    Exact up to 2^53, that is for any set of at most 16 instances.

    >>> Product().added_values(np.array([6, 5, 4]), np.array([0, 3])).tolist()
    [6.0, 24.0, 90.0]
    """

    name, short, source = "product", "Mult", "mnist"
    formula = "product of the classes, 1 for the empty set"

    def value(self, classes: Integers, offsets: Integers) -> Floats:
        product: Floats = (_NUMBERS.astype(np.float64) ** counts(classes, offsets)).prod(1)
        return product

    def added_values(self, classes: Integers, offsets: Integers) -> Floats:
        starts, sizes = np.asarray(offsets[:-1]), np.diff(offsets)
        added = np.empty(len(classes))
        product = np.zeros(len(sizes))
        for i in range(int(sizes.max(initial=0))):
            going = np.flatnonzero(sizes > i)
            places = starts[going] + i
            longer = classes[places] * (product[going] if i else 1.0)
            added[places] = longer - product[going]
            product[going] = longer
        return added

    def shapley(self, classes: Integers, offsets: Integers) -> Floats:
        r"""Return $1/n + (c_i - 1)\int_0^1 \prod_{j \ne i} (1 + t (c_j - 1))\,dt$ in a set of n.

        The product is multilinear in the presence of instances, and the Shapley value is the
        integral of its derivative along the diagonal (Owen 1972). The integrand is a polynomial of
        degree n - 1, so Gauss-Legendre quadrature with n/2 nodes is exact. The term 1/n is the step
        from 0, where added values start, to the empty product 1.
        """
        sizes = np.diff(offsets)
        table = counts(classes, offsets)
        owner = owners(offsets)
        nodes, weights = np.polynomial.legendre.leggauss(int(sizes.max(initial=1)) // 2 + 1)
        integral = np.zeros(len(classes))
        for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            factors = 1 + t * (_NUMBERS - 1.0)  # never 0: nodes lie inside (0, 1)
            products = (factors**table).prod(1)
            integral += weight * products[owner] / factors[classes]
        return 1 / sizes[owner] + (classes - 1.0) * integral

    def distribution(self, size: int) -> Distribution:
        return of_products(size)


FUNCTIONS: dict[str, SetFunction] = {
    "unique-sum": UniqueSum(),
    "weighted-triangular": WeightedTriangular(),
    "unique-sum-synergy": UniqueSumSynergy(),
    "unique-count": UniqueCount(),
    "triangular-count": TriangularCount(),
    "product": Product(),
    **{plugin.name: plugin.load()() for plugin in entry_points(group="capnets.set_functions")},
}
"""Set functions by name; other packages add theirs through `capnets.set_functions`."""


def find_function(name: str) -> SetFunction:
    """Find a set function by its name or short name, in any case.

    >>> find_function("us+s").name
    'unique-sum-synergy'
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    for function in FUNCTIONS.values():
        if wanted in (function.name, function.short.lower()):
            return function
    raise unknown("set function", name, [*FUNCTIONS, *(f.short for f in FUNCTIONS.values())])


def _own(table: Integers, classes: Integers, offsets: Integers) -> Floats:
    """Look up the entry of a table (sets x classes) for each instance."""
    return table[owners(offsets), classes].astype(np.float64)


def _total(table: NDArray[Any]) -> Floats:
    """Sum each row."""
    total: Floats = table.sum(1, dtype=np.float64)
    return total


def _triangular(count: Integers) -> Integers:
    return count * (count + 1) // 2
