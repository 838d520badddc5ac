"""Lists, sets and tables are the same thing to an estimator."""

import numpy as np
import pandas as pd

from capnets.estimators import SetRegressor
from capnets.sets import Sets
from capnets.tables import Columns
from ragged import QUICK, frame_of


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
