"""Distillation: subsets that a teacher labels."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.learn.teacher import distill, pooled, pooled_teacher
from capnets.sets import Sets

GENERATOR = np.random.default_rng(0)
X = [GENERATOR.normal(size=(GENERATOR.integers(2, 6), 2)).astype(np.float32) for _ in range(40)]
LARGEST = np.array([x[:, 0].max() for x in X])
QUICK = {"model": "c-gru", "members": 1, "orders": 1, "epochs": 2, "hidden": 4, "random_state": 0}


def test_pooled_statistics():
    found = pooled(Sets.from_arrays(X))
    for row, x in zip(found, X, strict=True):
        expected = [*x.mean(0), *x.max(0), *x.min(0), len(x)]
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-6)


def test_subsets_are_of_one_set_or_two_and_keep_their_teacher_s_labels():
    problem = SetRegressor().problem(X, LARGEST)
    found = distill(problem, lambda s: np.array([s[k][:, 0].max() for k in range(len(s))]))
    train = found.train
    assert len(train) == 21 * len(X)
    np.testing.assert_array_equal(train.y[: len(X)], problem.train.y)
    owner = np.repeat(np.arange(len(X)), problem.train.sizes)
    for k in range(len(X), len(train)):
        parents = set(owner[train.rows(k)])
        assert len(parents) <= 2
        assert train.y[k] == pytest.approx(train[k][:, 0].max())
    assert set(train.sizes[len(X) :]) >= {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("kind", "y"),
    [
        (SetRegressor, LARGEST),
        (SetRegressor, np.stack([LARGEST, -LARGEST], axis=1)),
        (SetClassifier, LARGEST > 0.8),
        (SetClassifier, np.digitize(LARGEST, [0.5, 1.0])),
        (SetClassifier, np.stack([LARGEST > 0.5, LARGEST > 1], axis=1).astype(int)),
    ],
    ids=["amount", "amounts", "two classes", "classes", "labels"],
)
def test_the_stock_teacher_teaches_every_kind_of_label(kind, y, tmp_path):
    problem = kind().problem(X, y)
    teacher = pooled_teacher(problem)
    measured = np.asarray(teacher(problem.train))
    assert np.isfinite(measured).all()
    model = kind(**QUICK).fit(X, y, teacher="pooled")
    assert len(model.predict(X)) == len(X)
    assert model.config_.data["teacher"] == {"subsets": 20, "seed": 0}
    assert len(model.training_keys_) == len(X)
    assert kind.load(model.save(tmp_path / "run").folder).predict(X).shape == model.predict(X).shape


def test_a_student_follows_its_teacher_on_subsets():
    """No set of the data has one instance; the teacher knows what such a set is worth."""
    pairs = [x[:2] for x in X]
    y = np.array([x[:, 0].sum() for x in pairs])
    settings = QUICK | {"epochs": 40, "hidden": 16}
    student = SetRegressor(**settings, aggregation="sum", baseline="learned").fit(
        pairs, y, teacher=lambda s: np.array([s[k][:, 0].sum() for k in range(len(s))])
    )
    alone = [x[:1] for x in X]
    found = student.predict(alone)  # without a warning: the student has seen such sets
    assert np.corrcoef(found, [x[0, 0] for x in alone])[0, 1] > 0.9


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        (lambda sets: np.zeros(3), "the teacher gives an array of shape"),
        (lambda sets: np.full(len(sets), np.nan), "not finite"),
        ("boosted", "unknown teacher 'boosted'"),
        (SetRegressor(**QUICK).fit([x[:, :1] for x in X], LARGEST), "X has 2 features"),
    ],
    ids=["shape", "nan", "name", "features"],
)
def test_refused(teacher, message):
    with pytest.raises(InputError, match=message):
        SetRegressor(**QUICK).fit(X, LARGEST, teacher=teacher)
