"""Invalid settings raise an error of one sentence."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.learn import Options

X = [np.random.default_rng(k).normal(size=(k % 3 + 1, 2)) for k in range(12)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dropout": "x"}, "dropout must be a number from 0 to 1, not 'x'"),
        ({"dropout": np.nan}, "dropout must be a number"),
        ({"orders": np.nan}, "orders must be a whole number, not nan"),
        ({"orders": 0}, "orders must be from 1"),
        ({"orders": 10**21}, "orders must be from 1 to 1,000,000"),
        ({"epochs": 10**30}, "epochs must be from 1 to 1,000,000"),
        ({"members": 10**30}, "members must be from 1 to 1,000,000"),
        ({"hidden": True}, "hidden must be a whole number, not True"),
        ({"recipe": 1.5}, r"recipe must be a name, .* not 1.5"),
        ({"recipe": {"learning_rate": np.nan}}, "learning_rate must be a finite number, not nan"),
        ({"seed": 10**21}, "seed must be from 0 to"),
        ({"seed": -1}, "seed must be from 0 to"),
    ],
)
def test_refused(asked, message):
    with pytest.raises(InputError, match=message):
        Options(**asked)


@pytest.mark.parametrize("kind", [SetRegressor, SetClassifier])
@pytest.mark.parametrize(
    "asked",
    [
        {"random_state": 10**30},
        {"random_state": "x"},
        {"network": {"dropout": "x"}},
        {"early_stopping": 1.0},
    ],
    ids=str,
)
def test_estimators_say_it_too(kind, asked):
    with pytest.raises(InputError):
        kind(**asked).fit(X, [0, 1] * 6)
