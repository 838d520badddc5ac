"""C-Pool and C-Trees: statistics of the instances so far."""

import numpy as np
import pytest
import torch

from capnets.estimators import SetClassifier, SetRegressor
from capnets.models import build
from capnets.nn.trees import DEPTH, Trees, _boosted

GENERATOR = np.random.default_rng(0)
X = [GENERATOR.normal(size=(GENERATOR.integers(1, 8), 3)).astype("f4") for _ in range(60)]
LARGEST = np.array([x[:, 0].max() for x in X])


@pytest.mark.parametrize("classes", [True, False])
def test_trees_are_those_of_scikit_learn(classes):
    x = torch.from_numpy(GENERATOR.normal(size=(80, 5)).astype("f4"))
    y = x[:, :1] * x[:, 1:2] + x[:, 2:3]
    y = (y > 0).float() if classes else y
    trees = Trees(5, 1)
    trees.grow(x, y, classes=classes, weights=None, seed=3)
    rows = trees.rounded(x).numpy()
    model = _boosted(rows, y[:, 0].double().numpy(), classes=classes, weights=None, seed=3)
    if classes:
        p = model.predict_proba(rows)[:, 1]
        share = float(y.mean())
        expected = np.log(p / (1 - p)) - np.log(share / (1 - share))
    else:
        expected = model.predict(rows) - float(y.double().mean())
    np.testing.assert_allclose(trees(x)[:, 0].numpy(), expected, atol=1e-4)
    assert trees.features.shape[1] == 2**DEPTH - 1


@pytest.mark.parametrize("name", ["c-pool", "c-trees"])
@pytest.mark.parametrize("baseline", ["none", "learned"])
def test_no_order_changes_a_prediction_and_the_empty_set_is_the_baseline(name, baseline):
    model = build(name, in_features=3, activation="identity", baseline=baseline, seed=0)
    model.start(unit=torch.tensor([2.0]), label=torch.tensor([3.0]), size=4.0)
    x = torch.randn(2, 6, 3)
    torch.testing.assert_close(model(x), model(x.flip(1)))
    mask = torch.zeros(2, 6, dtype=torch.bool)
    torch.testing.assert_close(model(x, mask), model.baseline.expand(2, 1))
    assert model.baseline.tolist()[0] == (3.0 if baseline == "learned" else 0.0)
    torch.testing.assert_close(
        model.baseline + model.added_values(x).sum(1), model(x), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("name", ["c-pool", "c-trees"])
def test_learns_the_largest_instance(name):
    model = SetRegressor(name, baseline="learned", random_state=0, members=1).fit(
        X[:40], LARGEST[:40]
    )
    assert model.score(X[40:], LARGEST[40:]) > 0.5


@pytest.mark.parametrize("kinds", [2, 3])
def test_trees_learn_classes(kinds):
    y = np.digitize(LARGEST, np.quantile(LARGEST, np.arange(1, kinds) / kinds))
    model = SetClassifier("c-trees", random_state=0, members=1, calibrate=False).fit(X, y)
    assert model.score(X, y) > 0.8


def test_a_label_that_never_varies_grows_no_tree():
    trees = Trees(2, 1)
    trees.grow(torch.randn(9, 2), torch.ones(9, 1), classes=True, weights=None, seed=0)
    assert not trees(torch.randn(5, 2)).any()
