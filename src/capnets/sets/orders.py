"""Choose the orders in which a network reads the instances of sets.

An order lists, set after set, positions inside the set, as `Sets.reorder` takes it. `Orders` is a
reproducible description of several orders: random ones are drawn again from their seed instead of
being stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, permutations
from typing import Any, Self

import numpy as np

from capnets.errors import InputError, unknown
from capnets.records import Record
from capnets.sets import Array, Sets
from capnets.sets.hashing import instance_keys, splitmix64
from capnets.sets.ragged import positions_of, sorted_orders, starts_of

__all__ = ["EVERY_LIMIT", "Orders", "as_orders"]

KINDS = {
    "given": "the given order",
    "listed": "a listed order",
    "random": "random orders",
    "every": "every order",
}
#: Keeps the number of a draw from colliding with a seed of the same size.
ODD = np.uint64(0x9E3779B97F4A7C15)
EVERY_LIMIT = 8
"""Largest size for which every order can be requested: 8! = 40,320 passes."""


@dataclass(frozen=True, eq=False)
class Orders(Record):
    """A reproducible choice of instance orders.

    Parameters
    ----------
    kind
        `given`, `listed` (one explicit order), `random` or `every`.
    count
        Number of random orders.
    antithetic
        Whether random orders come in pairs of an order and its reverse. An instance that is early
        in one is late in the other, which cancels much of the noise.
    seed
        Random seed. Random orders depend on it and on the content of a set, not on other sets or
        on the order of the rows.
    listed
        The explicit order.
    label
        Description of the explicit order.
    """

    kind: str = "given"
    count: int = 1
    antithetic: bool = True
    seed: int = 0
    listed: tuple[int, ...] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of orders", self.kind, KINDS)
        if self.count < 1:
            raise InputError(f"at least 1 order is needed, not {self.count}")
        if self.seed < 0:
            raise InputError(f"a seed is not negative: {self.seed}")
        if (self.kind == "listed") != (self.listed is not None):
            raise InputError("pass listed if, and only if, the kind is 'listed'")

    @classmethod
    def random(cls, count: int, *, seed: int = 0, antithetic: bool = True) -> Self:
        """Return random orders, by default in pairs of an order and its reverse."""
        return cls("random", count, antithetic, seed)

    @classmethod
    def averaging(cls, count: int, *, seed: int = 0) -> Self:
        """Return random orders to average over; a count of one keeps the given order."""
        return cls.random(count, seed=seed) if count > 1 else cls()

    @classmethod
    def every(cls) -> Self:
        """Return all orders, for small sets."""
        return cls("every")

    @classmethod
    def of(cls, order: Any, *, label: str = "a listed order") -> Self:
        """Return one explicit order: positions inside the set, set after set."""
        return cls("listed", listed=tuple(int(p) for p in np.asarray(order).ravel()), label=label)

    @classmethod
    def by(cls, sets: Sets, key: Any, *, descending: bool = False) -> Self:
        """Sort instances by a feature (its name or index) or by one number per instance.

        >>> s = Sets.from_arrays([np.array([[3.0], [1.0], [2.0]])], feature_names=("age",))
        >>> Orders.by(s, "age").listed
        (1, 2, 0)
        """
        label = "the given numbers"
        if isinstance(key, str | int):
            names = sets.feature_names or ()
            if isinstance(key, str):
                if key not in names:
                    raise unknown("feature", key, names)
                key = names.index(key)
            elif not 0 <= key < sets.in_features:
                raise InputError(f"feature {key} does not exist: there are {sets.in_features}")
            label = names[key] if names else f"feature {key}"
            key = sets.instances[sets.index][..., key]
        keys = np.asarray(key, dtype=np.float64)
        if keys.shape != sets.index.shape:
            raise InputError(
                f"sorting needs one number per instance ({len(sets.index)}), not {keys.shape}"
            )
        order = sorted_orders(sets.sizes, -keys if descending else keys)
        direction = "descending" if descending else "ascending"
        return cls.of(order, label=f"sorted by {label}, {direction}")

    @property
    def exact(self) -> bool:
        """Whether the orders are deterministic."""
        return self.kind != "random"

    def blocks(self, sets: Sets) -> Iterator[list[Array]]:
        """Yield the orders for these sets, in mutually independent blocks."""
        sizes = sets.sizes
        if self.kind == "given":
            yield [positions_of(sizes)]
        elif self.kind == "listed":
            yield [np.asarray(self.listed, dtype=np.int64)]
        elif self.kind == "every":
            yield from ([order] for order in _every(sizes))
        else:
            draw = _random(sets, self.seed)
            for done in range(0, self.count, 2 if self.antithetic else 1):
                order = next(draw)
                paired = self.antithetic and done + 1 < self.count
                yield [order, reverse(order, sizes)] if paired else [order]

    def mean(
        self, sets: Sets, answer: Callable[[Sets], Array], *, per_instance: bool = False
    ) -> Array:
        """Average an answer with one row per set, or per instance, over these orders.

        Averaged added values sum to the average prediction.
        """
        starts = starts_of(sets.sizes)
        total, passes = np.zeros(()), 0
        for order in (order for block in self.blocks(sets) for order in block):
            found = np.asarray(answer(sets.reorder(order)), dtype=np.float64)
            if per_instance:  # back to the given order
                read, found = found, np.empty_like(found)
                found[starts + order] = read
            total, passes = total + found, passes + 1
        return total / passes

    def __str__(self) -> str:
        if self.kind == "listed":
            return self.label or KINDS["listed"]
        if self.kind != "random":
            return KINDS[self.kind]
        if self.count == 1:
            return "one random order"
        return f"{self.count} random orders{f' ({self._pairs()})' if self.antithetic else ''}"

    def _pairs(self) -> str:
        pairs, alone = divmod(self.count, 2)
        reverses = "1 and its reverse" if pairs == 1 else f"{pairs} and their reverses"
        return f"{reverses}, 1 without" if alone else reverses


def as_orders(orders: Orders | int | None, *, seed: int = 0) -> Orders:
    """Return `Orders`; None is the given order, a number that many random ones."""
    if isinstance(orders, Orders):
        return orders
    return Orders() if orders is None else Orders.random(orders, seed=seed)


def reverse(order: Array, sizes: Array) -> Array:
    """Reverse the order of each set.

    >>> reverse(np.array([1, 0, 2, 0]), np.array([3, 1])).tolist()
    [2, 0, 1, 0]
    """
    last = starts_of(sizes) + np.repeat(sizes, sizes) - 1
    backwards: Array = order[last - positions_of(sizes)]
    return backwards


def _random(sets: Sets, seed: int) -> Iterator[Array]:
    """Yield random orders; those of a set depend only on its content and the seed."""
    numbers = instance_keys(sets)
    for draw in count():
        salt = splitmix64(np.array([seed], np.uint64)) + splitmix64(
            np.array([draw], np.uint64) + ODD
        )
        # Drop one bit, so that the keys sort the same as signed integers.
        yield sorted_orders(sets.sizes, (splitmix64(numbers + salt) >> np.uint64(1)).view(np.int64))


def _every(sizes: Array) -> Iterator[Array]:
    longest = int(sizes.max(initial=0))
    if longest > EVERY_LIMIT:
        raise InputError(
            f"set {int(np.argmax(sizes))} has {longest} instances, which have "
            f"{longest}! = {math.factorial(longest):,} orders; average over random ones instead: "
            "Orders.random(32)"
        )
    for order in permutations(range(longest)):
        # Dropping the positions that a smaller set lacks gives each of its orders equally often.
        kept = {size: [p for p in order if p < size] for size in set(sizes.tolist())}
        yield np.array([p for size in sizes for p in kept[int(size)]], dtype=np.int64)
