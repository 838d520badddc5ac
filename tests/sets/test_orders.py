"""Random instance orders of sets."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.sets import random_orders
from tables_of_sets import generator


class TestOrders:
    def test_by_seed(self):
        sizes = [5, 3, 5]
        first = random_orders(sizes, generator(1))
        assert (first == random_orders(sizes, generator(1))).all()
        assert (first != random_orders(sizes, generator(2))).any()

    @pytest.mark.parametrize("sizes", [[3] * 6000, [3, 2] * 6000], ids=["equal", "varying"])
    def test_all_orders_are_equally_likely(self, sizes):
        order = random_orders(sizes, generator(3))
        parts = np.split(order, np.cumsum(sizes)[:-1])
        counts = Counter(tuple(p.tolist()) for p in parts if len(p) == 3)
        assert set(counts) == set(permutations(range(3)))
        # Chi-square with 5 degrees of freedom: above 20.5 once in a thousand seeds.
        assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 20.5

    @pytest.mark.parametrize("sizes", [[], [0], [0, 0], [1], [0, 2]])
    def test_small(self, sizes):
        assert len(random_orders(sizes, generator())) == sum(sizes)

    def test_shuffled_keeps_instances(self, three):
        shuffled = three.shuffled(generator())
        for k in range(3):
            assert sorted(shuffled[k].tolist()) == sorted(three[k].tolist())

    @pytest.mark.parametrize(
        ("order", "words"),
        [
            ([0, 1, 0, 1], "every position of every set once"),
            ([0, 2, 0, 1, 2], "every position of every set once"),
            ([0, 1, 0, -1, 2], "every position of every set once"),
            ([0, 1, 0, 1, 1], "order given for set 2 is not a permutation"),
            ([1, 1, 0, 1, 2], "order given for set 0 is not a permutation"),
        ],
    )
    def test_wrong_orders(self, three, order, words):
        with pytest.raises(InputError, match=words):
            three.reorder(order)
