"""Every listed inconsistency follows from the printed numbers by calculation."""

from math import sqrt
from statistics import pstdev, stdev

import numpy as np
import pytest

from capnets.paper.names import CAPACITY, MODELS
from capnets.paper.published import effectiveness, interpretability, labels, search
from capnets.paper.published.inconsistencies import INCONSISTENCIES
from capnets.paper.tables import TABLES
from capnets.tasks import FUNCTIONS
from capnets.tasks.distributions import mixture


def varying(function: str):
    return mixture([FUNCTIONS[function].distribution(n) for n in labels.VARYING_SIZES])


def varying_tric():
    printed, exact = labels.STATISTICS["TriC/var"], varying("triangular-count")
    assert round(exact.mean, 2) == 14.90
    assert round(exact.variance, 1) == 34.9
    assert printed["mean"] > 2 * exact.mean
    for model in ("rnn", "gru"):
        assert abs(effectiveness.VARYING_MEAN[model]["TriC"] / printed["variance"] - 1) < 0.03


def varying_synergy():
    exact = varying("unique-sum-synergy")
    error = sqrt(exact.variance / 100_000)
    assert round(exact.mean, 2) == 48.67
    assert round((labels.STATISTICS["US+S/var"]["mean"] - exact.mean) / error) == 35


def added_value_error_twice():
    once, again = (
        interpretability.ADDED_VALUE_ERROR,
        interpretability.PREFIX_ADDED_VALUE_ERROR,
    )
    assert all(once[c][task] != again[c][task] for c in CAPACITY for task in ("WTri", "TriC"))
    assert (once["c-gru"]["TriC"], again["c-gru"]["TriC"]) == (0.62, 1.15)


def product_sum():
    wrong = [
        (example.task, model)
        for example in interpretability.EXAMPLES.values()
        for model, values in example.values.items()
        if abs(sum(values) - example.totals[model]) > 0.005
    ]
    assert wrong == [("Mult", "c-gru")]


def product_empty_set():
    product = FUNCTIONS["product"]
    empty = float(product.value(np.array([], dtype=int), np.array([0, 0]))[0])
    first = interpretability.EXAMPLES["Mult"].classes[0]
    assert first - empty == 5
    assert interpretability.EXAMPLES["Mult"].expected[0] == 6


def attention_parameters():
    # eps and delta have 13,601; h has n (d + 2) + 1 for A (n x d), a, B (1 x n) and b.
    rest = search.PARAMETERS["attention"] - 13_601 - 1
    assert not any(rest % (d + 2) == 0 for d in (32, 64))
    assert search.PARAMETERS["deepset"] == 13_601


def order_deviations():
    def fits(model: str, deviation) -> bool:
        points = interpretability.ORDER_POINTS[model].values()
        return abs(deviation(points) - interpretability.ORDER_STATISTICS[model]["stdev"]) <= 0.005

    assert [fits(model, pstdev) for model in ("rnn", "c-rnn", "gru", "c-gru")] == [1, 1, 0, 0]
    assert [fits(model, stdev) for model in ("rnn", "c-rnn", "gru", "c-gru")] == [0, 0, 1, 1]


def order_lstm():
    deviation = {m: pstdev(points.values()) for m, points in interpretability.ORDER_POINTS.items()}
    assert round(deviation["c-lstm"], 3) == 0.030
    assert round(deviation["lstm"], 3) == 0.028
    assert deviation["c-rnn"] < deviation["rnn"]
    assert deviation["c-gru"] < deviation["gru"]


def order_level():
    for model in ("lstm", "gru"):
        gap = (
            effectiveness.MAIN_MEAN[model]["US"] - interpretability.ORDER_STATISTICS[model]["mean"]
        )
        assert gap >= 3 * effectiveness.MAIN_STDEV[model]["US"] - 1e-9


def search_against_main():
    def away(model: str, task: str) -> float:
        chosen = search.GRID[model, 3 if (model, 3, 32) in search.GRID else None, 32][task, 0.001]
        gap = chosen - effectiveness.MAIN_MEAN[model][task]
        return abs(gap) / effectiveness.MAIN_STDEV[model][task]

    far = {(m, t): away(m, t) for m in MODELS for t in search.GRID_TASKS if away(m, t) > 4.5}
    assert {name: round(number) for name, number in far.items()} == {
        ("c-lstm", "US+S"): 19,
        ("deepset", "WTri"): 5,
    }


def search_bold():
    jobs = [row for (model, _, _), row in search.GRID.items() if model == "set-transformer-l"]
    found = [number for row in jobs for (task, _), number in row.items() if task == "US+S"]
    assert 18.22 in found
    assert min(found) == 12.40


def training_bold():
    column = {model: row["US+S", 30_000] for model, row in effectiveness.TRAINING_SIZES.items()}
    assert sorted(column, key=column.get)[:3] == ["c-gru", "lstm", "c-lstm"]
    assert column["c-lstm"] == 6.14


def training_caption():
    assert len(effectiveness.TRAINING_SIZES) == 10
    assert len({sets for _, sets in effectiveness.TASKS_BY_SETS}) == 3


def training_accuracy_order():
    column = ("US+S", 30_000)
    accuracy, error = effectiveness.TRAINING_ACCURACY, effectiveness.TRAINING_SIZES
    assert accuracy["rnn"][column] > accuracy["c-rnn"][column]
    assert error["rnn"][column] > 6 * error["c-rnn"][column]


def histogram_wtri():
    counts = labels.HISTOGRAMS["WTri"]
    assert len(counts) == 200
    assert 100_000 - sum(counts) == 13


def tric_not_learned():
    variance = labels.STATISTICS["TriC/10"]["variance"]
    for model in ("rnn", "c-rnn", "attention"):
        assert abs(effectiveness.MAIN_MEDIAN[model]["TriC"] / variance - 1) < 0.02


CHECKS = [
    varying_tric,
    varying_synergy,
    added_value_error_twice,
    product_sum,
    product_empty_set,
    attention_parameters,
    order_deviations,
    order_lstm,
    order_level,
    search_against_main,
    search_bold,
    training_bold,
    training_caption,
    training_accuracy_order,
    histogram_wtri,
    tric_not_learned,
]


@pytest.mark.parametrize("check", CHECKS)
def test_inconsistency(check):
    check()


def test_each_listed_inconsistency_has_its_check_and_names_real_tables():
    names = [one.name.replace("-", "_") for one in INCONSISTENCIES]
    # The numbers of equations are not in our data: that one was counted by reading.
    assert names == [*(check.__name__ for check in CHECKS), "equation_number"]
    assert all(table in TABLES for one in INCONSISTENCIES for table in one.tables)
