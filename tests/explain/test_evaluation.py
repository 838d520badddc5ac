import numpy as np
import pytest

from capnets.errors import InputError
from capnets.explain import Explanation, explain, shapley_values
from capnets.explain.evaluation import (
    compare_explanations,
    completeness_gap,
    evaluate_explanation,
    rank_agreement,
    removal_curve,
    value_error,
)
from capnets.tasks import FUNCTIONS


def made_up(values, sets, **more) -> Explanation:
    return Explanation(
        method="made up",
        values=values,
        offsets=sets.offsets,
        predictions=sets.y,
        baselines=np.zeros(len(sets)),
        **more,
    )


def test_error_and_ranks_against_expected(capacity, one_hot):
    sets = one_hot([[7, 3, 7], [2, 1]])
    found = explain(capacity("unique-sum"), sets).with_expected([7, 3, 1, 1, 2])
    assert value_error(found) == pytest.approx((1 + 1 + 1) / 5)
    # (7, 3, 0) against (7, 3, 1) agree; (2, 1) against (1, 2) do not.
    assert rank_agreement(found) == pytest.approx(0)
    assert rank_agreement(found, found.values) == pytest.approx(1)


def test_sets_without_a_ranking_are_left_out(one_hot):
    sets = one_hot([[4, 4], [1, 2]])
    assert rank_agreement(made_up([2, 2.1, 1, 2], sets), [1, 1, 1, 2]) == 1
    assert rank_agreement(made_up([2, 2, 1, 2], sets), [1, 2, 1, 2]) == 0.5
    assert np.isnan(rank_agreement(made_up([2, 1, 1, 2], sets), [1, 1, 3, 3]))


def test_completeness(one_hot):
    sets = one_hot([[4, 4], [1, 2]])
    assert completeness_gap(made_up([2, 2, 1, 2], sets)) == 0
    assert completeness_gap(made_up([2, 3, 1, 0], sets)) == 1.5


def test_curves_by_hand(capacity, one_hot):
    sets = one_hot([[1, 5, 5]])
    best = made_up([1, 5, 0], sets)
    deletion = removal_curve(capacity("unique-sum"), sets, best)
    # Left after taking out 5, then 1, then 5: {1, 5} = 6, {5} = 5, {} = 0, from 6.
    assert deletion.predictions[[0, -1]].tolist() == [6, 0]
    assert deletion.aopc == pytest.approx((0 + 0 + 1 + 6) / 4)
    insertion = removal_curve(capacity("unique-sum"), sets, best, insert=True)
    assert insertion.aopc == pytest.approx((0 + 5 + 6 + 6) / 4)


def test_better_explanations_have_larger_areas(capacity, random_sets):
    sets = random_sets("weighted-triangular", [8, 5, 8, 3] * 10)
    model = capacity("weighted-triangular")
    good = shapley_values(model, sets)
    bad = made_up(-good.values, sets)
    for insert in (False, True):
        areas = [removal_curve(model, sets, e, insert=insert).aopc for e in (good, bad)]
        assert areas[0] > areas[1] + 1


def test_table(capacity, predictor, random_sets):
    sets = random_sets("unique-sum", [6] * 10)
    expected = FUNCTIONS["unique-sum"].shapley(sets.index, sets.offsets)
    one, two = capacity("unique-sum"), predictor("unique-sum")
    table = compare_explanations(
        sets,
        {
            "exact": (one, shapley_values(one, sets).with_expected(expected)),
            "sampled": (two, shapley_values(two, sets, orders=8).with_expected(expected)),
        },
    )
    assert table.loc["exact", "error"] == pytest.approx(0, abs=1e-5)
    assert table.loc["exact", "rank agreement"] == pytest.approx(1)
    assert table.loc["exact", "passes per set"] == 64
    assert 0 < table.loc["sampled", "error"] < 1
    assert set(table) == {
        "error", "rank agreement", "completeness gap", "deletion", "insertion", "passes per set",
        "seconds",
    }  # fmt: skip


def test_refuses(capacity, one_hot):
    sets = one_hot([[1, 2], [3]])
    found = explain(capacity("unique-sum"), sets)
    with pytest.raises(InputError, match="no expected values are known"):
        value_error(found)
    with pytest.raises(InputError, match="no expected values are known"):
        rank_agreement(found)
    with pytest.raises(InputError, match="cannot compare"):
        rank_agreement(found, [1, 2])
    with pytest.raises(InputError, match="not one of these sets"):
        removal_curve(capacity("unique-sum"), one_hot([[1, 2, 3]]), found)
    assert "error" not in evaluate_explanation(capacity("unique-sum"), sets, found)
