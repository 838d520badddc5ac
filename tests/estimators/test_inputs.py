"""Lists, sets and tables are equivalent inputs of an estimator."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.estimators.inputs import read
from capnets.estimators.per_set import per_set
from capnets.ingest import Columns, SetData, read_table
from capnets.sets import Sets
from ragged import QUICK, amounts, frame_of, ragged


def test_lists_sets_and_frames_are_the_same_thing(case):
    kind, X, y = case
    settings = QUICK | {"orders": 1}
    expected = kind(**settings).fit(X, y)
    frame = pd.concat(
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(set=k, y=y[k]) for k, x in enumerate(X)
    )
    np.testing.assert_allclose(
        kind(**settings).fit(Sets.from_arrays(X), y).raw(X), expected.raw(X), atol=1e-6
    )
    columns = Columns(set="set", target="y")
    by_target = kind(columns=columns, **settings).fit(frame)
    np.testing.assert_allclose(by_target.raw(frame), expected.raw(X), atol=1e-6)
    assert (by_target.predict(frame) == expected.predict(X)).all() or kind is SetRegressor
    assert by_target.feature_names_in_.tolist() == ["a", "b", "c"]
    per_row = kind(columns="set", **settings).fit(frame.drop(columns="y"), frame["y"])
    per_set = kind(columns="set", **settings).fit(frame.drop(columns="y"), y)
    for other in (per_row, per_set):
        np.testing.assert_allclose(other.raw(frame.drop(columns="y")), expected.raw(X), atol=1e-6)


def test_added_values_follow_the_rows_of_a_frame(case):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    frame["added"] = estimator.added_values(frame)
    sums = frame.groupby("set", sort=False)["added"].sum()
    np.testing.assert_allclose(sums, estimator.raw(frame)[:, 0], atol=1e-4)


def test_batches_and_tables_of_arrow_are_frames(case):
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), **QUICK).fit(frame)
    for table in (pa.Table.from_pandas(frame), pa.RecordBatch.from_pandas(frame)):
        np.testing.assert_array_equal(estimator.added_values(table), estimator.added_values(frame))
        again = kind(columns=Columns(set="set", target="y"), **QUICK).fit(table)
        np.testing.assert_array_equal(again.raw(table), estimator.raw(frame))


@pytest.mark.parametrize("target", ["y", ()])
def test_weights_and_groups_of_a_table_count_wherever_y_comes_from(case, target):
    kind, X, y = case
    frame = frame_of(X, y).assign(w=lambda f: 1.0 + f.set.str[1:].astype(int) % 3)
    frame = frame.assign(g=frame.w)
    columns = Columns(set="set", target="y", features=("a", "b", "c"), weight="w", group="g")
    estimator = kind(columns=columns, **QUICK | {"epochs": 1})
    expected = estimator.problem(frame)
    columns = Columns(set="set", target=target, features=("a", "b", "c"), weight="w", group="g")
    found = estimator.set_params(columns=columns).problem(frame, frame.y)
    np.testing.assert_array_equal(found.groups, expected.groups)
    np.testing.assert_array_equal(found.train.weights, expected.train.weights)
    plain = frame.drop(columns=["w", "g"])
    assert len(estimator.fit(frame, frame.y).predict(plain)) == len(X)
    assert np.isfinite(estimator.score(plain, plain.y))


def renamed(sets, *names):
    return Sets(sets.instances, sets.index, sets.offsets, sets.y, feature_names=names)


def test_features_of_other_names_are_refused(case):
    """A name tells a category and an offset too; the same ones in another order are others."""
    kind, X, y = case
    frame = frame_of(X, amounts(X)).assign(kind=lambda f: np.where(f.b > 0, "a", "b"))
    columns = Columns(set="set", target="y", features=("a", "kind"), categories=("kind",))
    far, farther = (frame.assign(a=frame.a + k) for k in (1.7e9, 1.8e9))
    sets = read_table(far, columns).sets
    labels = dict(zip((f"s{k}" for k in range(len(X))), y, strict=True))
    estimator = kind(columns=columns, **QUICK | {"epochs": 1})
    estimator.fit(sets, [labels[name] for name in sets.ids])
    np.testing.assert_array_equal(estimator.predict(far), estimator.predict(sets))
    assert len(estimator.predict([x[:, [0, 1, 1]] for x in X])) == len(X)  # no names, no question
    first, second, third = sets.feature_names
    others = far.assign(kind=far.kind.map({"a": "b", "b": "c"}))
    for other, words in [
        (farther, "feature 0 .* is 'a-18.*fitted with 'a-17"),
        (read_table(farther, columns).sets, "feature 0 .* is 'a-18.*fitted with 'a-17"),
        (others, "feature 1 .* is 'kind=b'.*fitted with 'kind=a'"),
        (renamed(sets, first, third, second), "feature 1 .* is 'kind=b'"),
    ]:
        with pytest.raises(InputError, match=words):
            estimator.predict(other)


# What is given per set --------------------------------------------------------------------------

NAMES = {
    "whole numbers": [7, 3, 12],
    "other whole numbers than theirs": [2, 0, 1],
    "fractions": [0.5, 3.0, 1e6],
    "text": ["b", "a", "c"],
    "text of numbers": ["10", "9", "8"],
    "days": list(pd.to_datetime(["2024-03-01", "2020-01-01", "2021-01-01"])),
}


def rows_of(names):
    """The first set has rows 0 and 3, the second row 1, the third rows 2 and 4."""
    return pd.DataFrame(
        {"set": [names[k] for k in (0, 1, 2, 0, 2)], "price": np.arange(5.0)},
        index=[40, 30, 20, 10, 0],
    )


def table_of(frame):
    return read(frame, "set")


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_what_is_indexed_by_set_is_looked_up_whatever_its_order(names, order):
    y = pd.Series([1.5, 2.5, 3.5], index=names).iloc[order]
    given = table_of(rows_of(names))
    assert per_set(y, given, name="y").tolist() == [1.5, 2.5, 3.5]
    both = per_set(pd.DataFrame({"a": y, "b": -y}), given, name="y")
    assert both.tolist() == [[1.5, -1.5], [2.5, -2.5], [3.5, -3.5]]
    named = SetData(Sets.from_arrays([np.ones((2, 1))] * 3, ids=given.sets.ids))
    assert per_set(y, named, name="y").tolist() == [1.5, 2.5, 3.5]


def test_what_is_indexed_by_row_is_looked_up_whatever_its_order():
    frame = rows_of("bac")
    y = pd.Series([1.5, 2.5, 3.5, 1.5, 3.5], index=frame.index)
    for listed in (y, y.sort_index(), y.to_numpy(), y.tolist()):
        assert per_set(listed, table_of(frame), name="y").tolist() == [1.5, 2.5, 3.5]
    same = frame.set_axis([0] * 5)  # rows that are called alike can only be in the same order
    assert per_set(y.set_axis([0] * 5), table_of(same), name="y").tolist() == [1.5, 2.5, 3.5]


def test_an_index_says_nothing_where_sets_have_no_names():
    given = SetData(Sets.from_arrays([np.ones((2, 1))] * 3))
    y = pd.Series([1.5, 2.5, 3.5], index=[9, 8, 7])
    assert per_set(y, given, name="y").tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    "index", [[0, 1, 2], ["a", "b", "d"], ["a", "b", "b"], [0, 1, 2, 3, 4], [40, 30, 20, 10, 10]]
)
def test_an_index_of_something_else_is_refused(index):
    given = table_of(rows_of("bac"))
    y = pd.Series(1.5, index=index)
    with pytest.raises(InputError, match=r"the index of y .* neither the sets .* y.to_numpy\(\)"):
        per_set(y, given, name="y")
    assert len(per_set(y.to_numpy(), given, name="y")) == 3


def test_an_index_that_may_be_either_is_refused():
    frame = pd.DataFrame({"set": [2, 0, 1], "price": np.arange(3.0)})
    y = pd.Series([1.5, 2.5, 3.5])
    with pytest.raises(InputError, match="may name the sets of X or its rows"):
        per_set(y, table_of(frame), name="y")
    assert per_set(y, table_of(frame.assign(set=range(3))), name="y").tolist() == [1.5, 2.5, 3.5]


def test_labels_and_weights_grouped_by_set_are_those_of_the_rows(case):
    """Grouping sorts by name; sets come as they first appear."""
    kind, X, y = case
    frame = frame_of(X, y).assign(w=lambda f: 1.0 + f.set.str[1:].astype(int) % 3)
    X, grouped = frame[["set", "a", "b", "c"]], frame.groupby("set")
    assert list(grouped.groups) != list(frame.set.unique())
    expected = kind(columns="set", **QUICK).fit(X, frame.y, sample_weight=frame.w)
    found = kind(columns="set", **QUICK).fit(X, grouped.y.first(), sample_weight=grouped.w.first())
    np.testing.assert_array_equal(found.raw(X), expected.raw(X))
    assert found.score(X, grouped.y.first()) == expected.score(X, frame.y)


def test_predictions_are_in_the_order_of_the_names_of_the_sets(case):
    kind, X, y = case
    frame = frame_of(X, y).drop(columns="y")
    estimator = kind(columns="set", **QUICK | {"orders": 1}).fit(frame, frame_of(X, y).y)
    ids = estimator.set_ids(frame)
    assert ids.tolist() == frame.set.unique().tolist()
    for k in (0, 7):
        alone = frame[frame.set == ids[k]]
        np.testing.assert_allclose(estimator.raw(alone)[0], estimator.raw(frame)[k], atol=1e-5)
    assert kind(**QUICK).fit(X, y).set_ids(X[:3]).tolist() == [0, 1, 2]


def test_a_frame_of_one_column_holds_weights(case):
    kind, X, y = case
    frame = frame_of(X, y).assign(w=lambda f: 1.0 + f.set.str[1:].astype(int) % 3)
    X, by_set = frame[["set", "a", "b", "c"]], frame.groupby("set")[["w"]].first()
    estimator = kind(columns="set", **QUICK | {"epochs": 1})
    expected = estimator.fit(X, frame.y, sample_weight=frame.w)
    score = expected.score(X, frame.y, sample_weight=frame.w)
    for weights in (frame[["w"]], by_set):
        found = kind(columns="set", **QUICK | {"epochs": 1}).fit(X, frame.y, sample_weight=weights)
        assert found.fingerprint_ == expected.fingerprint_
        assert found.score(X, frame.y, sample_weight=weights) == score


def test_far_columns_are_refused_where_a_network_learns_and_not_where_it_predicts(tmp_path):
    X = ragged(count=12)
    y, far = amounts(X), [x + 1.7e9 for x in X]
    sizes = np.cumsum([0] + [len(x) for x in X])
    np.savez(tmp_path / "far.npz", X=np.concatenate(far), offsets=sizes, y=y)
    for given in ((far, y), (tmp_path / "far.npz", None), (tmp_path / "far.npz", y)):
        with pytest.raises(InputError, match=r"column 0 lies between .* Subtract"):
            SetRegressor(**QUICK).fit(*given)
    model = SetRegressor(**QUICK).fit(X, y)
    alike = [X[0][:1] + np.array([[0.0], [1e-6]])]
    assert np.isfinite(model.predict(alike)).all()
    np.savez(tmp_path / "alike.npz", X=alike[0], offsets=[0, 2], y=y[:1])
    assert model.predict(tmp_path / "alike.npz") == pytest.approx(model.predict(alike))
