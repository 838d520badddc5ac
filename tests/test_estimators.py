"""What scikit-learn's own checks would ask if they knew ragged input, for both classes."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.sets import Sets
from capnets.tables import Columns

QUICK = {"members": 1, "orders": 2, "epochs": 8, "hidden": 8, "random_state": 0}


def ragged(count=60, features=3, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(generator.integers(1, 6), features)) for _ in range(count)]


def amounts(X):
    return np.array([x[:, 0].sum() for x in X])


def classes(X):
    return np.where([x[:, 0].max() > 0.8 for x in X], "yes", "no")


def frame_of(X, y):
    return pd.concat(
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(set=f"s{k}", y=y[k])
        for k, x in enumerate(X)
    ).sample(frac=1, random_state=0)


@pytest.fixture(params=[SetRegressor, SetClassifier])
def case(request):
    X = ragged()
    y = amounts(X) if request.param is SetRegressor else classes(X)
    return request.param, X, y


def test_init_only_stores_its_parameters(case):
    kind, _, _ = case
    estimator = kind()
    for name in inspect.signature(kind).parameters:
        assert hasattr(estimator, name)
    assert not [n for n in vars(estimator) if n.endswith("_")]


def test_parameters_go_round_through_clone_and_set_params(case):
    kind, X, y = case
    estimator = kind("c-rnn", **QUICK).fit(X, y)
    before = estimator.get_params()
    copy = clone(estimator)
    assert copy.get_params() == before
    assert not hasattr(copy, "model_")
    assert copy.set_params(hidden=5).hidden == 5
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(hiden=5)


def test_fit_returns_itself_and_leaves_parameters_and_data_alone(case):
    kind, X, y = case
    estimator = kind(**QUICK)
    before, copies = estimator.get_params(), [x.copy() for x in X]
    assert estimator.fit(X, y) is estimator
    assert estimator.get_params() == before
    assert all((a == b).all() for a, b in zip(X, copies, strict=True))
    assert estimator.n_features_in_ == 3


def test_unfitted(case):
    kind, X, _ = case
    for method in ("predict", "added_values", "explain", "save"):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(X)


def test_same_seed_same_bits_other_seed_others(case):
    kind, X, y = case
    one, two = (kind(**QUICK).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one._raw(X), two._raw(X))
    other = kind(**QUICK | {"random_state": 1}).fit(X, y)
    assert not np.allclose(one._raw(X), other._raw(X))
    state = np.random.RandomState(0)
    first, second = (kind(**QUICK | {"random_state": state}).fit(X, y) for _ in range(2))
    assert first.seed_ != second.seed_


def test_predictions_of_a_set_do_not_depend_on_the_others(case):
    kind, X, y = case
    estimator = kind(**QUICK | {"orders": 1}).fit(X, y)
    together = estimator._raw(X)
    alone = np.concatenate([estimator._raw([x]) for x in X])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_refit_forgets(case):
    kind, X, y = case
    wide = ragged(40, features=5, seed=3)
    labels = amounts(wide) if kind is SetRegressor else classes(wide)
    estimator = kind(**QUICK).fit(wide, labels).fit(X, y)
    np.testing.assert_array_equal(estimator._raw(X), kind(**QUICK).fit(X, y)._raw(X))


@pytest.mark.parametrize("orders", [1, 4])
@pytest.mark.parametrize("model", ["c-gru", "c-lstm", "c-rnn"])
def test_added_values_sum_to_the_prediction(case, model, orders):
    kind, X, y = case
    estimator = kind(model, **QUICK | {"orders": orders, "members": 2}).fit(X, y)
    values = estimator.added_values(X)
    owners = np.repeat(np.arange(len(X)), [len(x) for x in X])
    raw = estimator._raw(X)[:, 0]
    np.testing.assert_allclose(np.bincount(owners, values), raw, atol=1e-4)
    explanation = estimator.explain(X)
    np.testing.assert_allclose(explanation.values, values, atol=1e-4)
    np.testing.assert_allclose(explanation.predictions, raw, atol=1e-4)


@pytest.mark.parametrize("model", ["gru", "deepset", "attention", "set-transformer"])
def test_any_network_of_the_registry(case, model):
    kind, X, y = case
    estimator = kind(model, **QUICK).fit(X, y)
    assert len(estimator.predict(X)) == len(X)
    assert len(estimator.added_values(X)) == sum(map(len, X))


def test_lists_sets_and_frames_are_the_same_thing(case):
    kind, X, y = case
    settings = QUICK | {"orders": 1}
    expected = kind(**settings).fit(X, y)
    frame = pd.concat(
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(set=k, y=y[k]) for k, x in enumerate(X)
    )
    np.testing.assert_allclose(
        kind(**settings).fit(Sets.from_arrays(X), y)._raw(X), expected._raw(X), atol=1e-6
    )
    columns = Columns(set="set", target="y")
    by_target = kind(columns=columns, **settings).fit(frame)
    np.testing.assert_allclose(by_target._raw(frame), expected._raw(X), atol=1e-6)
    assert (by_target.predict(frame) == expected.predict(X)).all() or kind is SetRegressor
    assert by_target.feature_names_in_.tolist() == ["a", "b", "c"]
    per_row = kind(columns="set", **settings).fit(frame.drop(columns="y"), frame["y"])
    per_set = kind(columns="set", **settings).fit(frame.drop(columns="y"), y)
    for other in (per_row, per_set):
        np.testing.assert_allclose(other._raw(frame.drop(columns="y")), expected._raw(X), atol=1e-6)


def test_added_values_follow_the_rows_of_a_frame(case):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    frame["added"] = estimator.added_values(frame)
    sums = frame.groupby("set", sort=False)["added"].sum()
    np.testing.assert_allclose(sums, estimator._raw(frame)[:, 0], atol=1e-4)


def test_order_column_is_respected(case):
    kind, X, y = case
    frame = frame_of(X, y)
    frame["place"] = np.arange(len(frame))
    columns = Columns(set="set", target="y", order="place")
    estimator = kind(columns=columns, **QUICK).fit(frame)
    assert estimator.n_orders_ == 1
    assert not estimator.recipe_.reshuffle
    shuffled = frame.sample(frac=1, random_state=5)
    there = dict(zip(shuffled["set"].unique(), estimator._raw(shuffled)[:, 0], strict=True))
    here = dict(zip(frame["set"].unique(), estimator._raw(frame)[:, 0], strict=True))
    assert there.keys() == here.keys()
    assert all(abs(there[k] - here[k]) < 1e-5 for k in here)


def test_sample_weight_of_zero_is_absence(case):
    kind, X, y = case
    weight = np.ones(len(X))
    weight[30:] = 0
    flipped = np.array(y)
    flipped[30:] = np.roll(flipped[30:], 1)
    settings = QUICK | {"epochs": 3}
    one = kind(**settings).fit(X, y, sample_weight=weight)
    two = kind(**settings).fit(X, flipped, sample_weight=weight)
    # Where training begins is decided by all labels, but they are the same ones in another order.
    np.testing.assert_allclose(one._raw(X), two._raw(X), atol=1e-5)
    with pytest.raises(InputError, match="negative"):
        kind(**settings).fit(X, y, sample_weight=-weight)
    with pytest.raises(InputError, match="sample_weight has 3 entries"):
        kind(**settings).fit(X, y, sample_weight=[1, 1, 1])


def test_early_stopping_holds_sets_out(case):
    kind, X, y = case
    estimator = kind(early_stopping=True, validation_fraction=0.2, **QUICK).fit(X, y)
    assert all(line["valid"] is not None for line in estimator.history_)
    assert kind(**QUICK).fit(X, y).history_[0]["valid"] is None
    with pytest.raises(InputError, match="early_stopping"):
        kind(early_stopping="yes", **QUICK).fit(X, y)


def test_save_and_load(case, tmp_path):
    kind, X, y = case
    estimator = kind(**QUICK | {"members": 2}).fit(X, y)
    estimator.save(tmp_path / "run")
    again = kind.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    with pytest.raises(InputError, match="finished run"):
        estimator.save(tmp_path / "run")
    other = SetClassifier if kind is SetRegressor else SetRegressor
    with pytest.raises(InputError, match="not a saved"):
        other.load(tmp_path / "run")
    frame = frame_of(X, y)
    by_frame = kind(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    by_frame.save(tmp_path / "frame")
    np.testing.assert_array_equal(
        kind.load(tmp_path / "frame").predict(frame.drop(columns="y")), by_frame.predict(frame)
    )


def test_pickle_for_parallel_work(case):
    kind, X, y = case
    estimator = kind(**QUICK).fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - joblib does it to its workers
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))


def test_model_selection(case):
    kind, X, y = case
    scores = cross_val_score(kind(**QUICK), X, y, cv=3)
    assert scores.shape == (3,)
    groups = np.arange(len(X)) // 2
    assert cross_val_score(kind(**QUICK), X, y, groups=groups, cv=GroupKFold(3)).shape == (3,)
    sets = Sets.from_arrays(X)
    np.testing.assert_allclose(cross_val_score(kind(**QUICK), sets, y, cv=3), scores, atol=1e-6)
    pipeline = Pipeline(
        [
            ("double", FunctionTransformer(lambda X: [2 * x for x in X])),
            ("sets", kind(**QUICK)),
        ]
    )
    search = GridSearchCV(
        pipeline, {"sets__model": ["c-gru", "deepset"]}, cv=2, error_score="raise"
    )
    assert search.fit(X, y).best_params_["sets__model"] in ("c-gru", "deepset")


def test_kinds():
    assert is_regressor(SetRegressor())
    assert is_classifier(SetClassifier())


# What each learns -------------------------------------------------------------------------------


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
