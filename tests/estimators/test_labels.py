"""Amounts, classes and several labels at once: what added values mean for each."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from ragged import QUICK, amounts, classes, ragged


def test_regressor_learns_a_sum_and_what_each_instance_adds():
    X, test = ragged(300), ragged(100, seed=1)
    model = SetRegressor(members=2, orders=2, epochs=60, random_state=0).fit(X, amounts(X))
    assert model.score(test, amounts(test)) > 0.95
    exact = np.concatenate(test)[:, 0]
    assert np.corrcoef(model.added_values(test), exact)[0, 1] > 0.95


def test_several_outputs():
    X = ragged(200)
    y = np.stack([amounts(X), [len(x) for x in X]], axis=1)
    model = SetRegressor(members=1, epochs=40, orders=1, random_state=0).fit(X, y)
    assert model.predict(X).shape == (200, 2)
    assert model.added_values(X).shape == (sum(map(len, X)), 2)
    assert model.score(X, y) > 0.8
    column = SetRegressor(**QUICK).fit(X, y[:, :1])
    assert column.predict(X).shape == (200, 1)


def test_binary_added_values_are_signed_logits_of_the_second_class():
    X = ragged(300)
    y = classes(X)
    model = SetClassifier(members=2, orders=2, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, y) > 0.9
    values = model.added_values(X)
    assert values.min() < 0 < values.max()
    logit = model.decision_function(X)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-logit)), atol=1e-6)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
    assert ((logit > 0) == (model.predict(X) == "yes")).all()


def test_many_classes_have_a_value_each():
    X = ragged(300)
    y = np.digitize(amounts(X), [-1, 1]) * 10
    model = SetClassifier(members=1, orders=2, epochs=40, random_state=0).fit(X, y)
    assert model.classes_.tolist() == [0, 10, 20]
    assert model.score(X, y) > 0.8
    values = model.added_values(X)
    assert values.shape == (sum(map(len, X)), 3)
    owners = np.repeat(np.arange(300), [len(x) for x in X])
    sums = np.stack([np.bincount(owners, values[:, c]) for c in range(3)], axis=1)
    np.testing.assert_allclose(sums, model.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, atol=1e-6)


def test_several_labels_at_once():
    X = ragged(300)
    y = np.stack([amounts(X) > 0, [len(x) > 3 for x in X], amounts(X) > 1], axis=1).astype(int)
    model = SetClassifier(members=1, orders=2, epochs=40, random_state=0).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert (model.predict(X) == y).mean() > 0.85
    assert model.added_values(X).shape[1] == 3
    constant = y.copy()
    constant[:, 1] = 1
    with pytest.raises(InputError, match="label 1 has one class only"):
        SetClassifier(**QUICK).fit(X, constant)


def test_class_weights_move_the_decision():
    X = ragged(300)
    y = (amounts(X) + np.random.default_rng(0).normal(size=300) > 2).astype(int)
    settings = QUICK | {"epochs": 20}
    plain = SetClassifier(**settings).fit(X, y).predict(X).mean()
    balanced = SetClassifier(class_weight="balanced", **settings).fit(X, y).predict(X).mean()
    heavy = SetClassifier(class_weight={0: 1, 1: 50}, **settings).fit(X, y).predict(X).mean()
    assert plain < balanced < heavy
    with pytest.raises(InputError, match="class_weight"):
        SetClassifier(class_weight="fair", **settings).fit(X, y)


# Faults -----------------------------------------------------------------------------------------
