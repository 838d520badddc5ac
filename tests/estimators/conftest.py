"""Both estimators, with sets and labels for each."""

import pytest

from capnets.estimators import SetClassifier, SetRegressor
from ragged import amounts, classes, ragged


@pytest.fixture(params=[SetRegressor, SetClassifier])
def case(request):
    X = ragged()
    y = amounts(X) if request.param is SetRegressor else classes(X)
    return request.param, X, y
