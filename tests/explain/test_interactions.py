import numpy as np
import pytest

from capnets.errors import InputError
from capnets.explain import diagnose, interactions, leave_one_out
from capnets.models import build
from capnets.tasks.functions import PAIRS


def test_pairs_of_the_synergy_task_stand_out_exactly(capacity, random_sets):
    sets = random_sets("unique-sum-synergy", [6] * 150)
    found = interactions(capacity("unique-sum-synergy"), sets)
    assert found.exact
    assert found.errors is None
    matrix = found.by_class(sets.index)
    assert matrix == pytest.approx(matrix.T, nan_ok=True)
    upper = [(matrix[a, b], (a, b)) for a in range(10) for b in range(a + 1, 10)]
    assert {pair for _, pair in sorted(upper)[-5:]} == set(PAIRS)
    assert sorted(upper)[-6][0] == pytest.approx(0, abs=1e-4)


def test_two_of_a_kind(capacity, one_hot):
    """Only the subset of both and neither decides: -c in US, +c in WTri, for every context."""
    sets = one_hot([[7, 2, 7]])
    us = interactions(capacity("unique-sum"), sets).matrix(0)
    assert us == pytest.approx(np.array([[0, 0, -7], [0, 0, 0], [-7, 0, 0]]), abs=1e-5)
    wtri = interactions(capacity("weighted-triangular"), sets).matrix(0)
    assert wtri == pytest.approx(np.array([[0, 0, 7], [0, 0, 0], [7, 0, 0]]), abs=1e-5)


def test_sampled_agrees_with_exact(random_sets):
    sets = random_sets("unique-sum", [6] * 20)
    model = build("c-gru", in_features=10, seed=0)
    exact = interactions(model, sets)
    sampled = interactions(model, sets, samples=60, seed=0)
    assert not sampled.exact
    assert (sampled.set_index == exact.set_index).all()
    assert (sampled.second == exact.second).all()
    z = np.abs(sampled.values - exact.values) / np.maximum(sampled.errors, 1e-6)
    assert (z < 3).mean() > 0.98
    # 15 pairs x 60 contexts x 4 subsets; the empty one costs nothing.
    assert sampled.passes <= 20 * 15 * 60 * 4


def test_ragged_sets_keep_their_matrices(capacity, one_hot):
    sets = one_hot([[1], [3, 3], [5, 1, 5]])
    found = interactions(capacity("unique-sum"), sets)
    assert found.matrix(0).tolist() == [[0]]
    assert found.matrix(1)[0, 1] == pytest.approx(-3)
    assert found.matrix(2)[0, 2] == pytest.approx(-5)


def test_leave_one_out(capacity, one_hot):
    sets = one_hot([[7, 2, 7]])
    us = leave_one_out(capacity("unique-sum"), sets)
    assert us.alone == pytest.approx([7, 2, 7])
    assert us.loss == pytest.approx([0, 2, 0])
    assert us.contrast == pytest.approx([-7, 0, -7])
    assert leave_one_out(capacity("weighted-triangular"), sets).contrast == pytest.approx([7, 0, 7])


def test_diagnostics_of_known_functions(capacity, random_sets):
    for function, expected in {
        "unique-sum": {"superadditive": 0, "supermodular": 0},
        "weighted-triangular": {"subadditive": 0, "submodular": 0},
    }.items():
        sets = random_sets(function, [10] * 50)
        found = diagnose(capacity(function), sets, tolerance=1e-3).to_dict()
        assert found["breaks_monotonicity"] == 0
        assert found["cases"] == 50 * 16
        for name, share in expected.items():
            assert found[name] == share
        others = {"subadditive", "superadditive", "submodular", "supermodular"} - set(expected)
        assert all(found[name] > 0.05 for name in others)
    sets = random_sets("unique-sum-synergy", [10] * 50)
    both = diagnose(capacity("unique-sum-synergy"), sets)
    assert min(both.submodular, both.supermodular) > 0.02
    assert both.to_frame()["cases"].item() == 800


def test_monotone_under_appending_only(one_hot):
    """The first instance silences the second: removing it raises the prediction."""
    import torch
    from torch import nn

    from capnets.models.base import AdditiveModel

    class FirstCounts(AdditiveModel):
        def __init__(self):
            super().__init__(in_features=10, outputs=1)

        def values(self, x):
            values = x.argmax(-1).float()
            values[:, 1:] = 0
            return values[..., None]

        @property
        def final(self):
            return nn.Linear(1, 1)

    sets = one_hot([[1, 9]] * 30)
    found = diagnose(FirstCounts(), sets, tolerance=0.0)
    assert found.breaks_monotonicity > 0.1
    assert found.largest_rise == pytest.approx(8)
    assert torch.is_tensor(FirstCounts().unit)


def test_refuses(capacity, one_hot):
    model = capacity("unique-sum")
    single = one_hot([[1], [2]])
    with pytest.raises(InputError, match="no set has two instances"):
        interactions(model, single)
    with pytest.raises(InputError, match="no set has two instances"):
        diagnose(model, single)
    pairs = one_hot([[1, 2]])
    with pytest.raises(InputError, match="at least 1 sample"):
        interactions(model, pairs, samples=0)
    with pytest.raises(InputError, match="at least 1 sample"):
        diagnose(model, pairs, samples=0)
    with pytest.raises(InputError, match="tolerance must not be negative"):
        diagnose(model, pairs, tolerance=-1)
    found = interactions(model, pairs)
    with pytest.raises(InputError, match="set 1 does not exist"):
        found.matrix(1)
    with pytest.raises(InputError, match="3 classes given, but there are 2"):
        found.by_class([1, 2, 3])
    with pytest.raises(InputError, match=r"2\^30 = 1,073,741,824"):
        interactions(model, one_hot([[1] * 30]))
