"""What an estimator says when it cannot do what it is asked for."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
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
        (lambda X, y: (frame_of(X, y), y), "name its set column"),
    ],
)
def test_faults(case, change, words):
    kind, X, y = case
    with pytest.raises(InputError, match=words):
        kind(**QUICK).fit(*change(X, y))


def test_faults_of_parameters_and_of_use(case):
    kind, X, y = case
    estimator = kind(**QUICK).fit(X, y)
    with pytest.raises(InputError, match=r"4 features, but .* fitted with 3"):
        estimator.predict(ragged(features=4))
    for settings, words in [
        ({"model": "c-gruu"}, "did you mean 'c-gru'"),
        ({"orders": 0}, "orders"),
        ({"recipe": "slow"}, "recipe"),
        ({"dropout": 1.5}, "dropout"),
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
        SetClassifier(activation="abs", **QUICK).fit(X, classes(X))
    with pytest.raises(InputError, match="not a number"):
        SetRegressor(**QUICK).fit(X, classes(X))
    y = amounts(X)
    y[7] = np.nan
    with pytest.raises(InputError, match="label of set 7"):
        SetRegressor(**QUICK).fit(X, y)
    frame = frame_of(X, classes(X))
    with pytest.raises(InputError, match="y varies within set"):
        SetClassifier(columns="set", **QUICK).fit(frame.drop(columns="y"), np.arange(len(frame)))
