"""The contract of scikit-learn's estimator checks, for ragged input."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns
from capnets.sets import Sets
from ragged import QUICK, amounts, classes, frame_of, ragged


def test_init_only_stores_its_parameters(case):
    kind, _, _ = case
    estimator = kind()
    for name in inspect.signature(kind).parameters:
        assert hasattr(estimator, name)
    assert not [n for n in vars(estimator) if n.endswith("_")]


def test_parameters_go_round_through_clone_and_set_params(case):
    kind, X, y = case
    estimator = kind(**QUICK | {"model": "c-rnn"}).fit(X, y)
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
    np.testing.assert_array_equal(one.raw(X), two.raw(X))
    other = kind(**QUICK | {"random_state": 1}).fit(X, y)
    assert not np.allclose(one.raw(X), other.raw(X))
    state = np.random.RandomState(0)
    first, second = (kind(**QUICK | {"random_state": state}).fit(X, y) for _ in range(2))
    assert first.seed_ != second.seed_


def test_predictions_of_a_set_do_not_depend_on_the_others(case):
    kind, X, y = case
    estimator = kind(**QUICK | {"orders": 1}).fit(X, y)
    together = estimator.raw(X)
    alone = np.concatenate([estimator.raw([x]) for x in X])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_refit_forgets(case):
    kind, X, y = case
    wide = ragged(40, features=5, seed=3)
    labels = amounts(wide) if kind is SetRegressor else classes(wide)
    estimator = kind(**QUICK).fit(wide, labels).fit(X, y)
    np.testing.assert_array_equal(estimator.raw(X), kind(**QUICK).fit(X, y).raw(X))


@pytest.mark.parametrize("model", ["gru", "deepset", "attention", "set-transformer"])
def test_any_network_of_the_registry(case, model):
    kind, X, y = case
    estimator = kind(**QUICK | {"model": model}).fit(X, y)
    assert len(estimator.predict(X)) == len(X)
    assert len(estimator.added_values(X)) == sum(map(len, X))


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
    np.testing.assert_allclose(one.raw(X), two.raw(X), atol=1e-5)
    with pytest.raises(InputError, match="negative"):
        kind(**settings).fit(X, y, sample_weight=-weight)
    with pytest.raises(InputError, match="sample_weight has 3 entries"):
        kind(**settings).fit(X, y, sample_weight=[1, 1, 1])


def test_early_stopping_holds_sets_out(case):
    kind, X, y = case
    estimator = kind(early_stopping=0.2, **QUICK).fit(X, y)
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
    again = kind.load(tmp_path / "frame")
    np.testing.assert_array_equal(again.predict(frame.drop(columns="y")), by_frame.predict(frame))
    assert again.score(frame) == by_frame.score(frame)


def test_features_have_names_where_x_names_them(case, tmp_path):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), **QUICK)
    sets = Sets.from_arrays(X, feature_names=("x", "y", "z"))
    given = {"frame": (frame, None, ["a", "b", "c"]), "sets": (sets, y, ["x", "y", "z"])}
    for name, (data, labels, names) in given.items():
        estimator.fit(data, labels).save(tmp_path / name)
        assert estimator.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(
            kind.load(tmp_path / name).feature_names_in_, estimator.feature_names_in_
        )
    estimator.fit(X, y).save(tmp_path / "list")
    assert not hasattr(estimator, "feature_names_in_")
    assert not hasattr(kind.load(tmp_path / "list"), "feature_names_in_")


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


def test_score_is_of_sets_however_labels_are_given(case):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    names = estimator.set_ids(frame)
    labels = frame.groupby("set").y.first()[names].to_numpy()
    measure = r2_score if kind is SetRegressor else accuracy_score
    expected = measure(labels, estimator.predict(frame))
    weights = np.arange(len(X)) % 5
    weighted = measure(labels, estimator.predict(frame), sample_weight=weights)
    by_row = frame.set.map(dict(zip(names, weights, strict=True)))
    for given in (None, labels, frame.y, frame.groupby("set").y.first()):
        assert estimator.score(frame, given) == pytest.approx(expected, abs=1e-6)
        for weight in (weights, by_row):
            found = estimator.score(frame, given, sample_weight=weight)
            assert found == pytest.approx(weighted, abs=1e-6)
    by_list = kind(**QUICK).fit(X, y)
    sets = Sets.from_arrays(X, y=y) if kind is SetRegressor else None
    assert sets is None or by_list.score(sets) == pytest.approx(by_list.score(X, y), abs=1e-6)
    with pytest.raises(InputError, match="y is missing"):
        by_list.score(X)


def test_score_asks_for_no_column_that_only_training_needs(case):
    kind, X, y = case
    frame = frame_of(X, y).assign(group=0, weight=2.0)
    columns = Columns(set="set", target="y", group="group", weight="weight")
    estimator = kind(columns=columns, **QUICK).fit(frame)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    assert estimator.score(frame.drop(columns=["group", "weight"])) == estimator.score(frame)


def test_score_knows_classes_that_a_test_frame_lacks():
    X = ragged()
    frame = frame_of(X, np.where(amounts(X) > 0, 10, 9))  # numbered as text: 10, 9
    estimator = SetClassifier(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    some = frame[frame.y == 10]
    assert estimator.score(some) == (estimator.predict(some) == 10).mean()


def test_model_selection_on_frames_is_that_on_sets(case):
    kind, X, y = case
    frame = frame_of(X, y)
    named = kind(columns=Columns(set="set", target="y"), **QUICK)
    folds = {"groups": frame.set, "cv": GroupKFold(3), "error_score": "raise"}
    by_row = cross_val_score(named, frame, frame.y, **folds)
    np.testing.assert_allclose(cross_val_score(named, frame, **folds), by_row, atol=1e-6)
    train, test = next(GroupKFold(3).split(frame, groups=frame.set))
    by_hand = clone(named).fit(frame.iloc[train]).score(frame.iloc[test])
    assert by_row[0] == pytest.approx(by_hand, abs=1e-6)
    search = GridSearchCV(
        named, {"model": ["c-gru", "deepset"]}, cv=folds["cv"], error_score="raise"
    )
    search.fit(frame, frame.y, groups=frame.set)
    best = search.best_estimator_.score(frame)  # which knows the classes of the target from y
    assert search.score(frame, frame.y) == pytest.approx(best, abs=1e-6)


def test_kinds():
    assert is_regressor(SetRegressor())
    assert is_classifier(SetClassifier())


# What each learns -------------------------------------------------------------------------------


def test_rows_are_named_as_in_the_table():
    X = ragged()
    frame = frame_of(X, amounts(X))
    frame.index = [f"r{k}" for k in range(len(frame))]
    estimator = SetRegressor(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    shuffled = frame.sample(frac=1, random_state=0)
    found = estimator.explain(shuffled)
    rows = [frame.index.get_loc(name) for name in found.instances.names]
    expected = frame[["a", "b", "c"]].to_numpy(np.float32)[rows]
    np.testing.assert_array_equal(found.instances.table, expected)
    assert [f"r{k}" in found.to_html() for k in range(3)] == [True] * 3
