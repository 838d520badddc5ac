import itertools
import math

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.explain import shapley_values
from capnets.explain.shapley import all_subsets, from_subsets
from capnets.models import build
from capnets.sets import Sets
from capnets.tasks import FUNCTIONS

SIZES = [5, 2, 7, 7, 1]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("additive", [True, False])
def test_exact_values_are_the_closed_form(function, additive, capacity, predictor, random_sets):
    sets = random_sets(function, SIZES)
    model = capacity(function) if additive else predictor(function, ordered=True)
    found = shapley_values(model, sets)
    expected = FUNCTIONS[function].shapley(sets.index, sets.offsets)
    if function == "product":  # the first of an order takes the empty product's 1 with it
        assert found.predictions == pytest.approx(sets.y)
    assert found.values == pytest.approx(expected, rel=1e-5, abs=1e-4)
    assert found.gaps == pytest.approx(0, abs=1e-3)
    assert found.exact
    assert found.passes == sum(2**n - 1 for n in SIZES) + len(SIZES)


def test_the_closed_forms_of_the_set_functions(capacity, one_hot):
    sets = one_hot([[7, 7, 7, 2, 9]])
    for function, expected in {
        "unique-sum": [7 / 3] * 3 + [2, 9],  # c / k
        "unique-count": [1 / 3] * 3 + [1, 1],  # 1 / k
        "weighted-triangular": [7 * 2] * 3 + [2, 9],  # c (k + 1) / 2
    }.items():
        found = shapley_values(capacity(function), sets)
        assert found.values == pytest.approx(expected, rel=1e-6)


def test_from_subsets_against_the_mean_over_orders():
    rng = np.random.default_rng(0)
    worth = rng.normal(size=(2, 16))
    worth[:, 0] = 0
    slow = np.zeros((2, 4))
    for order in itertools.permutations(range(4)):
        seen = 0
        for i in order:
            slow[:, i] += worth[:, seen | 1 << i] - worth[:, seen]
            seen |= 1 << i
    assert from_subsets(worth) == pytest.approx(slow / math.factorial(4))


def test_axioms():
    """Efficiency, symmetry, null player and linearity, for games drawn at random."""
    rng = np.random.default_rng(1)
    f, g = rng.normal(size=(2, 1, 32))
    f[:, 0] = g[:, 0] = 0
    assert from_subsets(f).sum() == pytest.approx(f[0, -1])
    assert from_subsets(2 * f + g) == pytest.approx(2 * from_subsets(f) + from_subsets(g))
    members = all_subsets(5)
    counts = members[:, :2].sum(1)
    symmetric = (rng.normal(size=3)[counts] + members[:, 2] * 4.0)[None]
    values = from_subsets(symmetric)
    assert values[0, 0] == pytest.approx(values[0, 1])
    assert values[0, 3] == pytest.approx(0)


@pytest.mark.parametrize("name", ["c-gru", "gru", "deepset", "attention"])
def test_sampled_agrees_with_exact(name):
    rng = np.random.default_rng(0)
    sets = Sets.from_arrays([rng.normal(size=(6, 4)) for _ in range(30)])
    model = build(name, in_features=4, seed=0)
    exact = shapley_values(model, sets)
    sampled = shapley_values(model, sets, orders=200, seed=1)
    assert not sampled.exact
    assert sampled.gaps == pytest.approx(0, abs=1e-5)
    z = np.abs(sampled.values - exact.values) / np.maximum(sampled.errors, 1e-6)
    assert (z < 3).mean() > 0.985  # a normal error would give 0.997
    once = 1 if not model.ordered else 6
    if name != "attention":  # reads every prefix anew
        assert sampled.passes == 30 * (200 * once + (name in ("c-gru", "gru")))


def test_ragged_sets_are_estimated_together(capacity, random_sets):
    sets = random_sets("unique-sum", [3, 1, 5, 3])
    found = shapley_values(capacity("unique-sum"), sets, orders=100, seed=0)
    closed = FUNCTIONS["unique-sum"].shapley(sets.index, sets.offsets)
    assert found.values == pytest.approx(closed, abs=0.8)
    assert found.predictions == pytest.approx(sets.y)


def test_chunks_change_nothing(random_sets):
    sets = random_sets("unique-sum", SIZES)
    model = build("c-gru", in_features=10, seed=0)
    whole, small = (shapley_values(model, sets, chunk=c).values for c in (10**6, 7))
    assert whole == pytest.approx(small, abs=1e-5)


def test_too_large_says_the_cost_and_offers_sampling(capacity, random_sets):
    sets = random_sets("unique-sum", [3, 25])
    with pytest.raises(
        InputError, match=r"set 1 has 25.*33,554,432 subsets.*orders=32: 800 passes"
    ):
        shapley_values(capacity("unique-sum"), sets)
    assert shapley_values(capacity("unique-sum"), sets, orders=2).passes == 2 * 28 + 2
    with pytest.raises(InputError, match="at least 1 order"):
        shapley_values(capacity("unique-sum"), sets, orders=0)
