"""Set functions agree with simple implementations, one set at a time."""

from collections import Counter
from itertools import combinations, pairwise, permutations
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.sets import offsets_of, random_orders
from capnets.tasks.functions import FUNCTIONS, find_function

PAIRS = [{0, 6}, {1, 3}, {2, 9}, {4, 7}, {5, 8}]


def triangular(m):
    return sum(range(m + 1))


SLOW = {
    "US": lambda s: sum(set(s)),
    "WTri": lambda s: sum(c * triangular(m) for c, m in Counter(s).items()),
    "US+S": lambda s: (
        sum(set(s)) + 10 * sum({a, b} in PAIRS for a, b in combinations(sorted(set(s)), 2))
    ),
    "UC": lambda s: len(set(s)),
    "TriC": lambda s: sum(triangular(m) for m in Counter(s).values()),
    "Mult": prod,
}


def slow_added_values(f, s):
    values = [0, *(f(s[: i + 1]) for i in range(len(s)))]
    return [b - a for a, b in pairwise(values)]


def slow_shapley(f, s):
    orders = list(permutations(range(len(s))))
    total = [0.0] * len(s)
    for order in orders:
        added = slow_added_values(f, [s[i] for i in order])
        for i, value in zip(order, added, strict=True):
            total[i] += value / len(orders)
    return total


functions = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=lambda f: f.short)
ragged = st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=8)


def flat(sets):
    return np.array([c for s in sets for c in s], dtype=np.int64), offsets_of(
        [len(s) for s in sets]
    )


def random_sets(seed, sizes):
    rng = np.random.default_rng(seed)
    return rng.integers(10, size=sum(sizes)), offsets_of(sizes)


@functions
@settings(max_examples=30, deadline=None)
@given(sets=ragged)
def test_values_equal_the_definition(f, sets):
    assert f.value(*flat(sets)).tolist() == [SLOW[f.short](s) for s in sets]


@functions
@settings(max_examples=30, deadline=None)
@given(sets=ragged)
def test_added_values_are_differences_of_prefixes(f, sets):
    expected = [v for s in sets for v in slow_added_values(SLOW[f.short], s)]
    assert f.added_values(*flat(sets)).tolist() == expected


@functions
def test_added_values_sum_to_the_label_in_every_order(f):
    sizes = np.random.default_rng(1).integers(1, 15, size=300)
    classes, offsets = random_sets(0, sizes)
    labels = f.value(classes, offsets)
    for seed in range(3):
        order = random_orders(sizes, torch.Generator().manual_seed(seed))
        reordered = classes[np.repeat(offsets[:-1], sizes) + order]
        added = f.added_values(reordered, offsets)
        assert np.add.reduceat(added, offsets[:-1]).tolist() == labels.tolist()
        assert f.value(reordered, offsets).tolist() == labels.tolist()


@functions
def test_shapley_is_the_average_over_all_orders(f):
    sets = [[3, 3, 1], [0, 6, 6, 0, 2], [7], [5, 8, 8, 8, 1, 3], [9, 0, 9, 2, 2, 2], []]
    expected = [v for s in sets for v in slow_shapley(SLOW[f.short], s)]
    np.testing.assert_allclose(f.shapley(*flat(sets)), expected, rtol=1e-12, atol=1e-12)


@functions
def test_shapley_sums_to_the_label(f):
    sizes = np.random.default_rng(2).integers(1, 15, size=200)
    classes, offsets = random_sets(3, sizes)
    values = f.shapley(classes, offsets)
    gaps = np.add.reduceat(values, offsets[:-1]) - f.value(classes, offsets)
    # Values may cancel (a 0 takes the product away), so the error is held against their size.
    assert (abs(gaps) <= 1e-11 * (1 + np.add.reduceat(abs(values), offsets[:-1]))).all()


@functions
def test_small_integers_give_the_same(f):
    classes, offsets = random_sets(5, [3, 0, 7, 10])
    for method in (f.value, f.added_values, f.shapley):
        np.testing.assert_array_equal(
            method(classes.astype(np.uint8), offsets), method(classes, offsets)
        )


def test_examples_of_the_paper():
    one = np.array([0, 3])
    assert find_function("Mult").added_values(np.array([6, 5, 4]), one).tolist() == [6, 24, 90]
    assert find_function("US+S").added_values(np.array([7, 9, 2]), one).tolist() == [7, 9, 12]


def test_the_empty_set():
    nothing = np.array([], dtype=np.int64), np.array([0, 0])
    for f in FUNCTIONS.values():
        assert f.value(*nothing).tolist() == [1.0 if f.short == "Mult" else 0.0]
        assert f.added_values(*nothing).tolist() == []


def test_lookup_by_name_and_short_name():
    for name, f in FUNCTIONS.items():
        assert name == f.name
        for text in (f.name, f.short, f.name.upper(), f.short.lower(), f.name.replace("-", "_")):
            assert find_function(text) is f


def test_an_unknown_function_names_the_near_ones():
    with pytest.raises(InputError, match=r"did you mean 'unique-sum'"):
        find_function("uniqe-sum")


@functions
def test_classes_out_of_range_are_refused(f):
    for bad in ([10], [-1]):
        with pytest.raises(InputError, match="between 0 and 9"):
            f.value(np.array(bad), np.array([0, 1]))


def test_offsets_must_fit():
    with pytest.raises(InputError, match="offsets must run from 0"):
        FUNCTIONS["unique-sum"].value(np.array([1, 2]), np.array([0, 1]))
