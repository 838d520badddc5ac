import math
import tracemalloc

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.evaluate import added_values, predict
from capnets.explain import Orders, explain
from capnets.explain.streaming_mean import StreamingMean
from capnets.models import MODELS, build
from capnets.tasks import FUNCTIONS

SMALL = [4, 1, 5, 5, 3]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_given_order_is_exact(function, capacity, random_sets):
    sets = random_sets(function, SMALL)
    found = explain(capacity(function), sets)
    expected = FUNCTIONS[function].added_values(sets.index, sets.offsets)
    assert found.values == pytest.approx(expected)
    assert found.predictions == pytest.approx(sets.y)
    assert found.gaps == pytest.approx(0, abs=1e-9)
    assert found.exact
    assert found.errors is None
    assert found.passes == len(sets)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("additive", [True, False])
def test_every_order_gives_the_closed_form(function, additive, capacity, predictor, random_sets):
    sets = random_sets(function, SMALL)
    model = capacity(function) if additive else predictor(function)
    found = explain(model, sets, orders=Orders.every())
    closed = FUNCTIONS[function].shapley(sets.index, sets.offsets)
    assert found.values == pytest.approx(closed, rel=1e-6, abs=1e-5)
    assert found.exact
    assert found.passes == 120 * (len(sets) if additive else sets.sizes.sum())


@pytest.mark.parametrize("function", ["unique-sum", "unique-count", "weighted-triangular"])
@pytest.mark.parametrize("antithetic", [True, False])
def test_random_orders_are_within_their_standard_errors(
    function, antithetic, capacity, random_sets
):
    sets = random_sets(function, [8] * 200)
    orders = Orders.random(64, seed=1, antithetic=antithetic)
    found = explain(capacity(function), sets, orders=orders)
    closed = FUNCTIONS[function].shapley(sets.index, sets.offsets)
    assert not found.exact
    uncertain = found.errors > 1e-12
    assert found.values[~uncertain] == pytest.approx(closed[~uncertain])
    if antithetic and function == "weighted-triangular":
        assert not uncertain.any()  # a value linear in the position: a pair cancels all noise
        return
    z = (found.values - closed)[uncertain] / found.errors[uncertain]
    assert abs(z.mean()) < 0.2
    assert 0.8 < z.std() < 1.3  # standard errors neither flatter nor scare


def test_antithetic_pairs_are_worth_their_while(capacity, random_sets):
    sets = random_sets("unique-sum", [8] * 200)
    paired, loose = (
        explain(capacity("unique-sum"), sets, orders=Orders.random(32, antithetic=a))
        for a in (True, False)
    )
    assert paired.errors.mean() < 0.9 * loose.errors.mean()


def test_a_listed_order_moves_values_with_their_instances(capacity, one_hot):
    sets = one_hot([[7, 3, 7]])
    found = explain(capacity("unique-sum"), sets, orders=Orders.of([2, 1, 0]))
    assert found.values.tolist() == [0, 3, 7]
    by_class = Orders.by(sets, sets.index, descending=True)
    assert explain(capacity("unique-sum"), sets, orders=by_class).values.tolist() == [7, 3, 0]


def test_order_dependence_is_said(position_weighted, one_hot):
    sets = one_hot([[1, 2, 3], [5]])
    found = explain(position_weighted, sets, orders=Orders.every())
    # Every position is equally likely, so instance c adds 2 c on average.
    assert found.values == pytest.approx([2, 4, 6, 5])
    assert found.predictions == pytest.approx([12, 5])
    every = [10, 11, 11, 13, 13, 14]
    assert found.prediction_spreads == pytest.approx([np.std(every, ddof=1), 0])
    assert "changes with the order by ±0.775" in found.meaning


def test_values_of_registry_networks_agree_with_evaluation():
    rng = np.random.default_rng(0)
    from capnets.sets import Sets

    sets = Sets.from_arrays([rng.normal(size=(n, 4)) for n in (3, 5, 2)])
    for name in MODELS:
        if name.startswith("set-transformer"):
            continue
        model = build(name, in_features=4, seed=0)
        found = explain(model, sets)
        assert found.values == pytest.approx(added_values(model, sets), abs=1e-5)
        assert found.predictions == pytest.approx(predict(model, sets), abs=1e-5)
        averaged = explain(model, sets, orders=4)
        mean = Orders.random(4).mean(sets, lambda read, m=model: predict(m, read))
        assert averaged.predictions == pytest.approx(mean, abs=1e-5)
        if not model.ordered:
            assert averaged.prediction_spreads == pytest.approx(0, abs=1e-5)


def test_same_seed_same_values(capacity, random_sets):
    sets = random_sets("product", [8] * 5)
    one, same, other = (
        explain(capacity("product"), sets, orders=4, seed=s).values for s in (0, 0, 1)
    )
    assert (one == same).all()
    assert (one != other).any()


def test_spreads_over_all_orders(position_weighted, capacity, one_hot):
    sets = one_hot([[1, 2, 3], [4, 4, 4]])
    found = explain(position_weighted, sets, orders=Orders.every())
    assert found.prediction_spreads == pytest.approx([np.std([10, 11, 11, 13, 13, 14], ddof=1), 0])
    assert found.spreads[0] == pytest.approx(math.sqrt(2 / 3 * 6 / 5))
    calm = explain(capacity("unique-sum"), sets, orders=8)
    assert calm.prediction_spreads == pytest.approx(0, abs=1e-9)


def test_memory_does_not_grow_with_orders(capacity, random_sets):
    sets = random_sets("unique-sum", [8] * 200)

    def peak(orders: int) -> int:
        tracemalloc.start()
        explain(capacity("unique-sum"), sets, orders=orders, chunk=512)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(24) < 1.2 * peak(4)


def test_bad_orders(capacity, one_hot):
    sets = one_hot([[1, 2, 3]])
    with pytest.raises(InputError, match="not a permutation"):
        explain(capacity("unique-sum"), sets, orders=Orders.of([0, 0, 1]))
    with pytest.raises(InputError, match="every position of every set once"):
        explain(capacity("unique-sum"), sets, orders=Orders.of([0, 1]))
    with pytest.raises(InputError, match="at least 1 order is needed, not 0"):
        explain(capacity("unique-sum"), sets, orders=0)


@pytest.mark.parametrize("blocks", [[2, 2, 2, 2], [1, 1, 1], [2, 2, 1]])
def test_mean_of_blocks_against_plain_formulas(blocks):
    rng = np.random.default_rng(0)
    arrays = [[rng.normal(5, 2, size=3) for _ in range(b)] for b in blocks]
    mean = StreamingMean()
    for block in arrays:
        mean.add(block)
    flat = np.array([a for block in arrays for a in block])
    assert mean.mean == pytest.approx(flat.mean(0))
    assert mean.spread == pytest.approx(flat.std(0, ddof=1))
    if len(set(blocks)) == 1:
        means = np.array([np.mean(block, axis=0) for block in arrays])
        assert mean.error == pytest.approx(means.std(0, ddof=1) / len(blocks) ** 0.5)
    else:
        assert (mean.error > 0).all()


def test_one_block_has_no_error():
    mean = StreamingMean()
    mean.add([np.ones(2), np.zeros(2)])
    assert mean.error is None
