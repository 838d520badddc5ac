"""Error messages of estimators."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns
from ragged import QUICK, amounts, classes, frame_of, ragged


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (np.ones((3, 2)), y), "list with one 2-D array"),
        (lambda X, y: ([], []), "zero sets"),
        (lambda X, y: ([*X[:-1], np.ones((0, 3))], y), "set 59 has no instances"),
        (lambda X, y: ([*X[:-1], np.ones((2, 4))], y), "set 59"),
        (lambda X, y: ([*X[:-1], np.full((2, 3), np.inf)], y), "set 59"),
        (lambda X, y: ([*X[:-1], np.array([["a", "b", "c"]])], y), "set 59"),
        (lambda X, y: (X, y[:-1]), "59 entries"),
        (lambda X, y: (X, None), "y is missing"),
        (lambda X, y: (7, y), "X is a int"),
        (lambda X, y: (frame_of(X, y), y), r'pass its set column.*set="basket", target="worth"'),
        (lambda X, y: (dict(enumerate(X)), y), r"X is a dict.*list\(X.values\(\)\)"),
        (lambda X, y: ([*X[:-1], [[1, 2, 3], [4]]], y), "set 59 is a list that is no array"),
        (lambda X, y: ("nothing.parquet", None), "nothing.parquet: there is no such file"),
        (
            lambda X, y: (pa.array([1.0]), y),
            "X is a pyarrow DoubleArray that is not a table; give a Table",
        ),
        (
            lambda X, y: (SimpleNamespace(columns=[], dtypes=[]), y),
            "neither a pandas frame nor an Arrow stream",
        ),
        (lambda X, y: (X, 3), "y has no entries; 60"),
        (lambda X, y: (X, [[1], [1, 2]] * 30), "y has rows of unequal lengths"),
        (lambda X, y: (X, [None, *y[1:]]), "label of set 0 is None"),
    ],
)
def test_faults(case, change, words):
    kind, X, y = case
    with pytest.raises(InputError, match=words):
        kind(**QUICK).fit(*change(X, y))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.nan, "weight of set 7 is nan"),
        (np.inf, "weight of set 7 is inf"),
        (-1, "weight of set 7 is -1"),
        ("much", "weights must be numbers"),
    ],
)
def test_faults_of_weights(case, weight, words):
    kind, X, y = case
    weights = [1.0] * 7 + [weight] + [1.0] * 52
    fitted = kind(**QUICK).fit(X, y)
    for use in (kind(**QUICK).fit, fitted.score):
        with pytest.raises(InputError, match=words):
            use(X, y, sample_weight=weights)
        with pytest.raises(InputError, match="all weights are zero"):
            use(X, y, sample_weight=np.zeros(60))
        with pytest.raises(InputError, match=r"weights have shape \(60, 1\)"):
            use(X, y, sample_weight=np.ones((60, 1)))


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA])
def test_gaps_in_what_is_given_by_row_are_not_taken_for_changes(case, gap):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns="set", **QUICK)
    labels = frame.y.astype(object).where(frame.set != "s7", gap)
    with pytest.raises(InputError, match="label of set s7 is"):
        estimator.fit(frame.drop(columns="y"), labels)
    weights = pd.Series(1.0, frame.index).where(frame.set != "s7")
    with pytest.raises(InputError, match="weight of set s7 is nan"):
        estimator.fit(frame.drop(columns="y"), frame.y, sample_weight=weights)
    row = int(np.argmax(frame.set == frame.set.value_counts().index[0]))
    some = frame.y.astype(object).to_numpy(copy=True)
    some[row] = gap
    with pytest.raises(InputError, match=f"y varies within set {frame.set.iloc[row]}"):
        estimator.fit(frame.drop(columns="y"), some)


def test_faults_of_parameters_and_of_use(case):
    kind, X, y = case
    estimator = kind(**QUICK).fit(X, y)
    with pytest.raises(InputError, match=r"4 features, but .* expecting 3"):
        estimator.predict(ragged(features=4))
    for settings, words in [
        ({"model": "c-gruu"}, "did you mean 'c-gru'"),
        ({"orders": 0}, "orders"),
        ({"recipe": "slow"}, "recipe"),
        ({"network": {"dropout": 1.5}}, "dropout"),
        ({"network": {"dropuot": 0.5}}, "did you mean 'dropout'"),
        ({"random_state": -1}, "random_state"),
    ]:
        with pytest.raises(InputError, match=words):
            kind(**QUICK | settings).fit(X, y)


def test_faults_of_labels():
    X = ragged()
    with pytest.raises(InputError, match="one class only"):
        SetClassifier(**QUICK).fit(X, np.zeros(60))
    with pytest.raises(InputError, match="use SetRegressor"):
        SetClassifier(**QUICK).fit(X, amounts(X))
    with pytest.raises(InputError, match="activation='identity'"):
        SetClassifier(network={"activation": "abs"}, **QUICK).fit(X, classes(X))
    with pytest.raises(InputError, match="not a number"):
        SetRegressor(**QUICK).fit(X, classes(X))
    y = amounts(X)
    y[7] = np.nan
    with pytest.raises(InputError, match="label of set 7"):
        SetRegressor(**QUICK).fit(X, y)
    with pytest.raises(InputError, match=r"y mixes classes of several types \(int, str\)"):
        SetClassifier(**QUICK).fit(X, np.array([1, "a"] * 30, dtype=object))
    frame = frame_of(X, classes(X))
    with pytest.raises(InputError, match="y varies within set"):
        SetClassifier(columns="set", **QUICK).fit(frame.drop(columns="y"), np.arange(len(frame)))


@pytest.mark.parametrize("far", [1e8, 1.7e9, -1.7e9, 1e15])
def test_amounts_that_32_bits_round_away_are_refused(far):
    X = ragged()
    near, y = amounts(X), far + amounts(X)
    words = "far from 0 but near each other.*subtract a constant"
    with pytest.raises(InputError, match=f"y has .*{words}"):
        SetRegressor(**QUICK).fit(X, y)
    with pytest.raises(InputError, match=f"output 1 of y has .*{words}"):
        SetRegressor(**QUICK).fit(X, np.stack([near, y], axis=1))
    with pytest.raises(InputError, match=f"column 'y' has .*{words}"):
        SetRegressor(columns=Columns(set="set", target="y"), **QUICK).fit(frame_of(X, y))
    SetRegressor(**QUICK | {"epochs": 1}).fit(X, far * (1 + near / 100))  # as far apart as from 0
    for alike in (np.full(60, 3.7), np.zeros(60), [0.3, 0.1 + 0.2] * 30):
        SetRegressor(**QUICK | {"epochs": 1}).fit(X, alike)
