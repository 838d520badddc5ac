import itertools

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.explain import StreamSelection, select
from capnets.models import build
from capnets.sets import Sets
from capnets.tasks import FUNCTIONS


def brute_force(sets: Sets, function: str, k: int, costs=None, budget=np.inf) -> list[float]:
    best = []
    for s in range(len(sets)):
        classes, start = sets.rows(s), int(sets.offsets[s])
        options = [0.0]
        for m in range(1, min(k, len(classes)) + 1):
            for chosen in itertools.combinations(range(len(classes)), m):
                if costs is not None and sum(costs[start + i] for i in chosen) > budget:
                    continue
                value = FUNCTIONS[function].value(classes[list(chosen)], np.array([0, m]))
                options.append(float(value[0]))
        best.append(max(options))
    return best


@pytest.mark.parametrize("function", ["unique-sum", "unique-sum-synergy", "weighted-triangular"])
def test_optimum_against_brute_force(function, capacity, random_sets):
    sets = random_sets(function, [7, 4, 6, 1])
    found = select(capacity(function), sets, k=3, method="optimum")
    assert found.values == pytest.approx(brute_force(sets, function, 3))


@pytest.mark.parametrize("method", ["greedy", "lazy", "optimum"])
def test_unique_count_picks_distinct_classes(method, capacity, random_sets):
    sets = random_sets("unique-count", [10] * 40)
    found = select(capacity("unique-count"), sets, k=5, method=method)
    for s, chosen in enumerate(found.positions):
        classes = sets.rows(s)[list(chosen)]
        assert len(set(classes)) == len(classes) == min(5, len(set(sets.rows(s))))
        assert found.gains[s] == pytest.approx([1] * len(classes))


def test_lazy_is_greedy_where_gains_shrink_and_cheaper(capacity, random_sets):
    sets = random_sets("unique-sum", [12] * 20)
    greedy, lazy = (select(capacity("unique-sum"), sets, k=5, method=m) for m in ("greedy", "lazy"))
    assert lazy.values == pytest.approx(greedy.values)
    assert lazy.passes < 0.6 * greedy.passes


def test_guarantee_of_greedy(capacity, random_sets):
    sets = random_sets("unique-sum", [9] * 30)
    greedy = select(capacity("unique-sum"), sets, k=4)
    assert (greedy.values >= (1 - 1 / np.e) * np.array(brute_force(sets, "unique-sum", 4))).all()


def test_single_values_are_fooled_by_redundancy(capacity, one_hot):
    sets = one_hot([[9, 9, 9, 1, 2]])
    single = select(capacity("unique-sum"), sets, k=3, method="single")
    greedy = select(capacity("unique-sum"), sets, k=3)
    assert single.values.tolist() == [9]
    assert greedy.values.tolist() == [12]
    assert greedy.gains[0] == pytest.approx((9, 2, 1))


def test_stops_where_nothing_is_added(capacity, one_hot):
    found = select(capacity("unique-sum"), one_hot([[4, 4, 4], [0, 0, 0]]), k=3)
    assert found.positions == ((0,), ())
    assert found.values.tolist() == [4, 0]


@pytest.mark.parametrize("method", ["greedy", "lazy"])
def test_costs_and_budget(method, capacity, one_hot):
    # The best for its cost (1) leaves no room for the best (9): the better of both rules is taken.
    sets = one_hot([[1, 9]])
    found = select(capacity("unique-sum"), sets, costs=[0.1, 10], budget=10, method=method)
    assert found.positions == ((1,),)
    # Many cheap ones beat one that costs all.
    sets = one_hot([[9, 4, 5, 6]])
    found = select(capacity("unique-sum"), sets, costs=[3, 1, 1, 1], budget=3, method=method)
    assert sorted(found.positions[0]) == [1, 2, 3]


@pytest.mark.parametrize("method", ["greedy", "lazy", "single", "optimum"])
def test_budget_is_kept(method, capacity, random_sets):
    sets = random_sets("unique-sum", [8] * 15)
    costs = np.random.default_rng(0).uniform(0, 3, size=len(sets.index))
    found = select(capacity("unique-sum"), sets, costs=costs, budget=4, method=method)
    optimum = np.array(brute_force(sets, "unique-sum", 8, costs, 4))
    for s, chosen in enumerate(found.positions):
        assert costs[sets.offsets[s] + np.array(chosen)].sum() <= 4 + 1e-6
    if method == "optimum":
        assert found.values == pytest.approx(optimum)
    else:
        assert (found.values <= optimum + 1e-6).all()
    if method in ("greedy", "lazy"):
        assert (found.values >= (1 - 1 / np.e) / 2 * optimum).all()


def test_free_instances_are_taken_first(capacity, one_hot):
    sets = one_hot([[3, 9, 0]])
    found = select(capacity("unique-sum"), sets, costs=[0, 5, 0], budget=5)
    assert sorted(found.positions[0]) == [0, 1]


def test_refuses(capacity, one_hot):
    model, sets = capacity("unique-sum"), one_hot([[1, 2], [3, 4]])
    for wrong, message in (
        ({}, "pass the number"),
        ({"k": 0}, "k must be at least 1"),
        ({"budget": 0}, "budget of 0 nothing"),
        ({"k": 2, "costs": [1, 1, 1, 1]}, "costs need a budget"),
        ({"budget": 1, "costs": [1, 1]}, "one number per instance"),
        ({"budget": 1, "costs": [1, 1, 1, -2]}, "instance 1 of set 1 costs -2"),
        ({"budget": 1, "costs": [1, 1, 1, float("nan")]}, "instance 1 of set 1 costs nan"),
        ({"k": 1, "method": "gredy"}, "did you mean 'greedy'"),
    ):
        with pytest.raises(InputError, match=message):
            select(model, sets, **wrong)
    with pytest.raises(InputError, match="use method='greedy'"):
        select(model, one_hot([[1] * 40]), k=10, method="optimum")


def test_stream_reaches_half_of_the_optimum_and_picks_distinct_classes(capacity, random_sets):
    for seed in range(5):
        sets = random_sets("unique-sum", [60], seed=seed)
        stream = StreamSelection(capacity("unique-sum"), k=4, epsilon=0.1)
        for x in sets[0]:
            stream.push(x)
        classes = sets.rows(0)[list(stream.positions)]
        assert len(set(classes)) == len(classes) <= 4
        assert stream.value == classes.sum() >= 0.4 * (9 + 8 + 7 + 6)
        assert stream.seen == 60
        assert stream.instances.argmax(1).tolist() == classes.tolist()


def test_stream_memory_does_not_grow(capacity):
    model = capacity("unique-count")
    stream = StreamSelection(model, k=3)
    eye = np.eye(10, dtype=np.float32)
    kept = [stream.push(eye[n % 10]) for n in range(200)]
    assert not any(kept[100:])
    assert sum(len(s.instances) for s in stream._sieves.values()) < 3 * 25


def test_stream_refuses(capacity):
    model = capacity("unique-sum")
    with pytest.raises(InputError, match="k must be at least 1"):
        StreamSelection(model, k=0)
    with pytest.raises(InputError, match="epsilon"):
        StreamSelection(model, k=1, epsilon=1.5)
    with pytest.raises(InputError, match="output 1 does not exist"):
        StreamSelection(model, k=1, output=1)
    stream = StreamSelection(model, k=1)
    assert stream.positions == ()
    assert stream.value == 0
    with pytest.raises(InputError, match="instance 0 of the stream"):
        stream.push([np.nan] * 10)
    with pytest.raises(InputError, match="built for 10 features"):
        StreamSelection(build("c-gru", in_features=10), k=1).push(np.zeros(3))
