"""Metrics agree with scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as reference

from capnets import metrics
from capnets.errors import InputError

Y = np.random.default_rng(0).integers(0, 20, size=50).astype(float)
P = Y + np.random.default_rng(1).normal(size=50)
Y2, P2 = np.stack([Y, 10 * Y[::-1]], 1), np.stack([P, Y], 1)


@pytest.mark.parametrize(("y", "p"), [(Y, P), (Y2, P2)], ids=["one output", "two outputs"])
class TestAgainstScikitLearn:
    def test_mse(self, y, p):
        assert metrics.mse(y, p) == pytest.approx(reference.mean_squared_error(y, p))

    def test_rmse(self, y, p):
        """The root of the mean over all outputs."""
        assert metrics.rmse(y, p) == pytest.approx(reference.mean_squared_error(y, p) ** 0.5)

    def test_mae(self, y, p):
        assert metrics.mae(y, p) == pytest.approx(reference.mean_absolute_error(y, p))

    def test_r2(self, y, p):
        expected = reference.r2_score(y, p, multioutput="variance_weighted")
        assert metrics.r2(y, p) == pytest.approx(expected)

    def test_accuracy(self, y, p):
        expected = reference.accuracy_score(y.flatten(), p.round().flatten())
        assert metrics.accuracy(y, p) == pytest.approx(expected)


@pytest.mark.parametrize("prediction", [[3.0, 3.0], [3.0, 4.0]])
def test_r2_of_labels_that_do_not_vary(prediction):
    """A number in any case: it is written to files that know no NaN."""
    assert metrics.r2([3.0, 3.0], prediction) == reference.r2_score([3.0, 3.0], prediction)


def test_r2_of_a_single_set_is_left_out():
    assert np.isnan(metrics.r2([3.0], [4.0]))
    assert metrics.regression([3.0], [4.0]) == {"mse": 1.0, "rmse": 1.0, "mae": 1.0}
    assert list(metrics.regression([[3.0, 1.0]], [[4.0, 1.0]])) == ["mse", "rmse", "mae"]


def test_halves_do_not_round_to_the_label():
    assert metrics.accuracy([1, 1, 1, 1], [0.5, 1.5, 0.51, 1.49]) == 0.5


def test_single_precision_is_not_kept():
    y = np.full(10**6, 1e4, np.float32)
    assert metrics.mse(y, y + np.float32(1)) == 1.0


def test_all_by_name():
    result = metrics.regression(Y, P)
    assert list(result) == ["mse", "rmse", "mae", "r2"]
    assert all(type(v) is float for v in result.values())


def test_all_of_them_follow_the_unit():
    """Metrics scale with the unit of the labels."""
    grams, kilograms = metrics.regression(1000 * Y, 1000 * P), metrics.regression(Y, P)
    powers = {"mse": 2, "rmse": 1, "mae": 1, "r2": 0}
    for name, power in powers.items():
        assert grams[name] == pytest.approx(kilograms[name] * 1000**power)


def test_refused():
    with pytest.raises(
        InputError, match=r"labels have shape \(3,\), but predictions have shape \(3, 1\)"
    ):
        metrics.mse(np.ones(3), np.ones((3, 1)))
    with pytest.raises(InputError, match="there are no sets to measure"):
        metrics.regression([], [])
