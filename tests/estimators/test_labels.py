"""Added values for amounts, classes and several labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.runs import evaluate_run
from capnets.ingest import Columns, read_table
from capnets.sets import Sets
from ragged import QUICK, amounts, classes, frame_of, ragged
from training_runs import train_run


def test_regressor_learns_a_sum_and_what_each_instance_adds():
    X, test = ragged(300), ragged(100, seed=1)
    model = SetRegressor("c-gru", members=2, orders=2, epochs=60, random_state=0).fit(X, amounts(X))
    assert model.score(test, amounts(test)) > 0.95
    exact = np.concatenate(test)[:, 0]
    assert np.corrcoef(model.added_values(test), exact)[0, 1] > 0.95


def test_several_outputs():
    X = ragged(200)
    y = np.stack([amounts(X), [len(x) for x in X]], axis=1)
    model = SetRegressor("c-gru", members=1, epochs=40, orders=1, random_state=0).fit(X, y)
    assert model.predict(X).shape == (200, 2)
    assert model.added_values(X).shape == (sum(map(len, X)), 2)
    assert model.score(X, y) > 0.8
    column = SetRegressor(**QUICK).fit(X, y[:, :1])
    assert column.predict(X).shape == (200, 1)


def test_binary_added_values_are_signed_logits_of_the_second_class():
    X = ragged(300)
    y = classes(X)
    model = SetClassifier("c-gru", members=2, orders=2, random_state=0).fit(X, y)
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
    model = SetClassifier("c-gru", members=1, orders=2, epochs=40, random_state=0).fit(X, y)
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
    model = SetClassifier("c-gru", members=1, orders=2, epochs=40, random_state=0).fit(X, y)
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


# Labels of a table and of an .npz file -----------------------------------------------------------

BRIEF = QUICK | {"epochs": 2}


def ratings(X):
    return np.choose(np.digitize(amounts(X), [-1, 1]), [10, 2, 3])


@pytest.mark.parametrize("kind", ["frame", "t.parquet", "t.csv"])
def test_classes_of_a_column_of_numbers_are_sorted_numbers(tmp_path, kind):
    X = ragged()
    frame = frame_of(X, ratings(X))
    table = frame if kind == "frame" else tmp_path / kind
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    model = SetClassifier(columns=Columns(set="set", target="y"), **BRIEF).fit(table)
    assert model.classes_.tolist() == [2, 3, 10]
    y = frame.drop_duplicates("set")["y"].to_numpy()
    assert model.score(table, y) == np.mean(model.predict(table) == y)
    # What scikit-learn pairs with the columns of probabilities.
    chances = model.predict_proba(table)[np.arange(60), np.searchsorted([2, 3, 10], y)]
    scorer = get_scorer("neg_log_loss")
    assert scorer(model, table, y) == pytest.approx(np.log(chances).mean(), abs=1e-6)
    model.save(tmp_path / "run")
    again = SetClassifier.load(tmp_path / "run")
    assert again.predict(table).tolist() == model.predict(table).tolist()


def test_several_target_columns_are_labels_of_their_names(tmp_path):
    X = ragged()
    frame = frame_of(X, amounts(X))
    frame["rich"] = (frame["y"] > 0).astype(int)
    frame["large"] = frame.groupby("set")["a"].transform("size") > 3
    columns = Columns(set="set", target=("rich", "large"), features=("a", "b", "c"))
    train_run(tmp_path / "run", frame, SetClassifier(columns=columns, **BRIEF))
    model = SetClassifier.load(tmp_path / "run")
    assert model.multilabel_
    assert model.output_names() == ["rich", "large"]
    assert set(np.unique(model.predict(frame))) <= {0, 1}
    assert 0 <= evaluate_run(tmp_path / "run", frame)["accuracy"] <= 1
    with pytest.raises(InputError, match="label 'rich' has one class only"):
        SetClassifier(columns=columns, **BRIEF).fit(frame.assign(rich=1))


def test_a_target_that_names_classes_is_no_amount(tmp_path):
    X = ragged()
    columns = Columns(set="set", target="y")
    with pytest.raises(InputError, match="column 'y' names classes"):
        SetRegressor(columns=columns, **BRIEF).fit(frame_of(X, classes(X)))
    with pytest.raises(InputError, match="'y' holds fractions"):
        SetClassifier(columns=columns, **BRIEF).fit(frame_of(X, amounts(X)))


def test_text_labels_of_an_npz_file(tmp_path):
    X = ragged()
    path, y = tmp_path / "t.npz", classes(X)
    offsets = np.cumsum([0, *map(len, X)])
    np.savez(path, X=np.concatenate(X), offsets=offsets, y=y)
    run = train_run(tmp_path / "run", path, SetClassifier(**BRIEF))
    model = SetClassifier.load(run.folder)
    assert model.classes_.tolist() == ["no", "yes"]
    share = np.mean(model.predict(X) == y)
    found = evaluate_run(run.folder, path, include_training=True)
    assert found["accuracy"] == pytest.approx(share)
    assert model.score(path) == pytest.approx(share)
    with pytest.raises(InputError, match="y names classes"):
        SetRegressor(**BRIEF).fit(path)
    # Another file numbers its own labels, and may have other ones.
    np.savez(path, X=np.ones((1, 3)), offsets=[0, 1], y=["yes"])
    assert evaluate_run(run.folder, path)["accuracy"] == (model.predict([np.ones((1, 3))]) == "yes")
    with pytest.raises(InputError, match="one class only \\(yes"):
        SetClassifier(**BRIEF).fit(path)
    np.savez(path, X=np.ones((1, 3)), offsets=[0, 1], y=["maybe"])
    with pytest.raises(InputError, match="label maybe, no known class"):
        evaluate_run(run.folder, path)


def test_a_number_far_from_zero_is_as_good_as_one_near_it():
    X = ragged()
    frame = frame_of(X, amounts(X))
    far = frame.assign(a=1.7e9 + frame["a"])
    columns = Columns(set="set", target="y")
    for settings in ({"orders": 1}, {"sort": "a"}):
        estimator = SetRegressor(columns=columns, **BRIEF | settings)
        near, other = (clone(estimator).fit(f) for f in (frame, far))
        np.testing.assert_allclose(other.predict(far), near.predict(frame), atol=1e-3)


@pytest.mark.parametrize(
    "types", [{"l1": bool, "l2": int}, "Int64", "boolean", {"l1": "boolean", "l2": float}], ids=str
)
def test_several_labels_are_the_same_in_every_type(types):
    X = ragged()
    y = pd.DataFrame({"l1": amounts(X) > 0, "l2": [len(x) > 3 for x in X]}).astype(int)
    expected = SetClassifier(**BRIEF).fit(X, y.to_numpy())
    found = SetClassifier(**BRIEF).fit(X, y.astype(types))
    assert found.fingerprint_ == expected.fingerprint_
    assert found.score(X, y.astype(types)) == expected.score(X, y.to_numpy())


def test_labels_of_another_type_are_compared_by_name():
    X = ragged()
    frame = frame_of(X, np.where(classes(X) == "yes", 1.5, 2.5))
    columns = Columns(set="set", target="kind", features=("a", "b", "c"))
    frame["kind"] = pd.Categorical(frame["y"])
    model = SetClassifier(columns=columns, **BRIEF).fit(frame)
    assert model.score(frame, frame.kind) == model.score(frame, frame.y) == model.score(frame)
    whole = SetClassifier(**BRIEF).fit(X, ratings(X))
    assert whole.score(X, ratings(X).astype(str)) == whole.score(X, ratings(X))
    assert whole.score(X, np.full(len(X), 77)) == 0  # a class never seen is no fault


def test_numbers_of_classes_are_not_their_names():
    X = ragged()
    frame = frame_of(X, classes(X))
    columns = Columns(set="set", target="y")
    sets = read_table(frame, columns).sets
    named = SetClassifier(columns=columns, **BRIEF).fit(frame)
    with pytest.raises(InputError, match=r"set s\d+ has the label [01], no known class \(no, yes"):
        named.score(sets)
    numbered = SetClassifier(columns=columns, **BRIEF).fit(sets)
    with pytest.raises(InputError, match=r"has the label (yes|no), no known class \(0, 1\)"):
        numbered.score(frame)
    mixed = np.array([0, "no"] * 30, dtype=object)
    with pytest.raises(InputError, match="has the label 0, no known class"):
        named.score(frame, mixed)


def test_a_class_that_only_held_out_sets_have_stays_a_class(tmp_path):
    """Every class has one set: some class has none in training, and none changes its number."""
    X = ragged(10)
    y = np.arange(10) * 10
    run = train_run(tmp_path / "run", Sets.from_arrays(X, y=y), SetClassifier(**BRIEF))
    model = SetClassifier.load(run.folder)
    assert run.metrics["test_sets"] > 0
    assert model.classes_.tolist() == y.tolist()
    assert model.predict_proba(X).shape == (10, 10)
    right = run.metrics["train"]["accuracy"] * run.metrics["train_sets"]
    right += run.metrics["test"]["accuracy"] * run.metrics["test_sets"]
    assert right == pytest.approx(model.score(X, y) * 10)
