import json
from collections import Counter

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.explain import Orders
from capnets.sets import Sets
from capnets.sets.orders import as_orders, reverse

SIZES = np.array([3, 1, 4])


def sets_of(sizes) -> Sets:
    rng = np.random.default_rng(0)
    return Sets.from_arrays([rng.normal(size=(size, 2)) for size in sizes])


def flat(orders: Orders, sizes=SIZES) -> list[list[int]]:
    return [order.tolist() for block in orders.blocks(sets_of(sizes)) for order in block]


def test_given():
    assert flat(Orders()) == [[0, 1, 2, 0, 0, 1, 2, 3]]


def test_antithetic_pairs_are_reverses_of_each_other():
    for block in Orders.random(6, seed=3).blocks(sets_of(SIZES)):
        order, backwards = block
        assert backwards.tolist() == reverse(order, SIZES).tolist()
        assert [order[:3].tolist()[::-1], order[4:].tolist()[::-1]] == [
            backwards[:3].tolist(),
            backwards[4:].tolist(),
        ]


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("antithetic", [True, False])
def test_as_many_as_asked_for(count, antithetic):
    assert len(flat(Orders.random(count, antithetic=antithetic))) == count


def test_same_seed_same_orders_other_seed_others():
    assert flat(Orders.random(4, seed=1)) == flat(Orders.random(4, seed=1))
    assert flat(Orders.random(4, seed=1)) != flat(Orders.random(4, seed=2))


def test_random_orders_are_uniform():
    seen = Counter(tuple(order) for order in flat(Orders.random(6000), np.array([3])))
    assert len(seen) == 6
    assert max(seen.values()) < 1.15 * min(seen.values())


class TestRandomOrdersBelongToTheSet:
    """They depend on what is in a set, and neither on other sets nor on the order of its rows."""

    def read(self, sets: Sets, k: int) -> list[list[list[float]]]:
        """Set k as it is read in each of eight orders."""
        return [
            sets.reorder(order)[k].tolist() for b in Orders.random(8).blocks(sets) for order in b
        ]

    def test_not_on_other_sets(self):
        sets = sets_of([3, 5, 4, 5, 2])
        for k in range(len(sets)):
            assert self.read(sets, k) == self.read(sets.subset([k]), 0)

    def test_not_on_the_order_of_rows(self):
        sets = sets_of([6, 1, 9])
        shuffled = sets.shuffled(torch.Generator().manual_seed(1))
        assert all(self.read(sets, k) == self.read(shuffled, k) for k in range(3))

    def test_sets_of_one_size_have_their_own(self):
        sets = sets_of([7] * 50)
        orders = {tuple(order) for order in np.split(next(Orders.random(2).blocks(sets))[0], 50)}
        assert len(orders) > 40

    def test_an_instance_has_another_place_in_another_set(self):
        rng = np.random.default_rng(0)
        twin = rng.normal(size=(2, 3))
        sets = Sets.from_arrays(
            [np.concatenate([twin, rng.normal(size=(1, 3))]) for _ in range(99)]
        )
        (order,) = next(Orders.random(1).blocks(sets))
        first = [o.index(0) < o.index(1) for o in order.reshape(99, 3).tolist()]
        assert 0.3 < np.mean(first) < 0.7

    def test_equal_instances_take_turns(self):
        sets = Sets.from_arrays([np.ones((2, 3))])
        orders = [tuple(o) for b in Orders.random(400, antithetic=False).blocks(sets) for o in b]
        assert 0.4 < np.mean([o == (0, 1) for o in orders]) < 0.6

    def test_minus_zero_is_zero(self):
        sets = Sets.from_arrays([np.array([[0.0], [1.0], [2.0]]), np.array([[-0.0], [1.0], [2.0]])])
        (order,) = next(Orders.random(1).blocks(sets))
        assert order[:3].tolist() == order[3:].tolist()

    def test_no_sets(self):
        (order,) = next(Orders.random(1).blocks(sets_of([2]).subset([])))
        assert len(order) == 0


def test_every_order_of_every_set_equally_often():
    orders = flat(Orders.every())
    assert len(orders) == 24
    assert set(Counter(tuple(o[:3]) for o in orders).values()) == {4}
    assert set(Counter(tuple(o[4:]) for o in orders).values()) == {1}


def test_every_order_of_a_large_set_says_the_cost():
    with pytest.raises(InputError, match=r"set 1 has 12 instances.*479,001,600 orders.*random"):
        flat(Orders.every(), np.array([3, 12]))


def test_sorted_by_a_feature_or_by_numbers():
    sets = Sets.from_arrays(
        [np.array([[3.0, 0], [1, 0], [2, 0]]), np.array([[5.0, 0], [4, 1]])],
        feature_names=("age", "height"),
    )
    assert Orders.by(sets, "age").listed == (1, 2, 0, 1, 0)
    assert Orders.by(sets, 0, descending=True).listed == (0, 2, 1, 0, 1)
    assert str(Orders.by(sets, "age")) == "sorted by age, ascending"
    assert Orders.by(sets, [1, 0, 2, 0, 0]).listed == (1, 0, 2, 0, 1)
    with pytest.raises(InputError, match="did you mean 'age'"):
        Orders.by(sets, "ages")
    with pytest.raises(InputError, match="feature 2 does not exist"):
        Orders.by(sets, 2)
    with pytest.raises(InputError, match="one number per instance"):
        Orders.by(sets, [1, 2])


@pytest.mark.parametrize(
    "orders", [Orders(), Orders.random(5, seed=2), Orders.every(), Orders.of([1, 0], label="mine")]
)
def test_json_round_trip(orders):
    again = Orders.from_dict(json.loads(json.dumps(orders.to_dict())))
    assert again.to_dict() == orders.to_dict()
    assert str(again) == str(orders)


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("antithetic", [True, False])
def test_description_of_random_orders(count, antithetic):
    """The description counts every order once: pairs with their reverses, and single orders."""
    orders = Orders.random(count, antithetic=antithetic)
    sizes = Counter(len(block) for block in orders.blocks(sets_of(SIZES)))
    pairs, alone = sizes[2], sizes[1]
    words = {0: "", 1: "1 and its reverse"}.get(pairs, f"{pairs} and their reverses")
    if pairs:
        words = f" ({words}{', 1 without' if alone else ''})"
    expected = "one random order" if count == 1 else f"{count} random orders{words}"
    assert str(orders) == expected


def test_refuses():
    with pytest.raises(InputError, match="at least 1 order"):
        as_orders(0)
    with pytest.raises(InputError, match="unknown kind of orders"):
        Orders("randm")
    with pytest.raises(InputError, match="unknown Orders setting 'counts'"):
        Orders.from_dict({"counts": 3})
    with pytest.raises(InputError, match="seed is not negative"):
        Orders.random(2, seed=-1)
    with pytest.raises(InputError, match="pass listed if, and only if"):
        Orders("listed")
