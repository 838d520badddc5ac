"""Fixed-length features of sets."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from capnets.errors import InputError
from capnets.estimators import SetFeatures, SetRegressor
from capnets.ingest import Columns
from ragged import QUICK, amounts, frame_of, ragged


def test_statistics_are_those_of_pandas():
    X = ragged()
    frame = frame_of(X, amounts(X))
    columns = Columns(set="set", features=("a", "b", "c"))
    statistics = ["mean", "min", "max", "sum", "median"]
    found = SetFeatures(columns, statistics=statistics).fit_transform(frame)
    grouped = frame.groupby("set", sort=False)
    assert found.index.tolist() == list(grouped.groups)
    assert (found["size"] == grouped.size()).all()
    for name in statistics:
        expected = grouped[["a", "b", "c"]].agg(name)
        got = found[[f"{name}_{c}" for c in "abc"]]
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_covariates_are_columns_and_a_network_reads_them():
    X = ragged(30)
    frame = frame_of(X, amounts(X))
    frame["age"] = frame.groupby("set").a.transform("first")
    frame["region"] = np.where(frame["age"] > 0, "n", "s")
    columns = Columns(set="set", target="y", covariates=("age", "region"))
    network = SetRegressor(**QUICK | {"epochs": 1})
    transformer = SetFeatures(columns, statistics=["sum"], size=False, network=network)
    found = transformer.fit_transform(frame, frame.y)
    assert found.columns[:6].tolist() == ["sum_a", "sum_b", "sum_c", "age", "region=n", "region=s"]
    ages = frame.drop_duplicates("set").age
    np.testing.assert_allclose(found["age"], ages, rtol=1e-6)
    assert (found["region=n"] == (found["age"] > 0)).all()
    np.testing.assert_allclose(
        found["prediction_y"], transformer.network_.predict(frame), rtol=1e-5
    )
    with pytest.raises(InputError, match="X has 0 covariates, but SetFeatures is expecting 3"):
        transformer.transform(X)


def test_lists_and_single_instances():
    X = ragged()
    found = SetFeatures().fit_transform(X)
    assert found.columns[:3].tolist() == ["size", "mean_x0", "mean_x1"]
    np.testing.assert_allclose(found["std_x0"], [x[:, 0].std() for x in X], atol=1e-6)
    assert np.isfinite(found.to_numpy()).all()


def test_pipeline_with_another_learner():
    X = ragged()
    y = amounts(X)
    pipeline = make_pipeline(SetFeatures(statistics=["sum"], size=False), LinearRegression())
    assert pipeline.fit(X[:40], y[:40]).score(X[40:], y[40:]) > 0.999


def test_set_output():
    X = ragged()
    frame = frame_of(X, amounts(X)).drop(columns="y")
    transformer = SetFeatures("set").set_output(transform="pandas")
    found = transformer.fit_transform(frame)
    assert isinstance(found, pd.DataFrame)
    assert found.columns.tolist() == transformer.get_feature_names_out().tolist()
    assert found.index.tolist() == frame.drop_duplicates("set").set.tolist()
    polars = pytest.importorskip("polars")
    assert isinstance(transformer.set_output(transform="polars").transform(frame), polars.DataFrame)


@pytest.mark.parametrize("as_frame", [False, True])
def test_network(as_frame):
    X = ragged(30)
    y = amounts(X)
    columns = Columns(set="set", target="y") if as_frame else None
    data = frame_of(X, y) if as_frame else X
    network = SetRegressor(columns=columns, **QUICK)
    transformer = SetFeatures(columns, statistics=[], network=network)
    found = transformer.fit(data, None if as_frame else y).transform(data)
    fitted = clone(network).fit(data, None if as_frame else y)
    assert not hasattr(network, "model_")
    np.testing.assert_allclose(found.iloc[:, 1], fitted.predict(data), atol=1e-5)
    values = fitted.added_values(data)
    owner = data.set.to_numpy() if as_frame else np.repeat(np.arange(30), [len(x) for x in X])
    by_set = pd.Series(values).groupby(owner, sort=False)
    np.testing.assert_allclose(found.iloc[:, 2], by_set.min(), atol=1e-5)
    np.testing.assert_allclose(found.iloc[:, 3], by_set.max(), atol=1e-5)


def test_faults():
    X = ragged(10)
    with pytest.raises(InputError, match="unknown statistic 'avg'"):
        SetFeatures(statistics=["avg"]).fit(X)
    with pytest.raises(InputError, match="nothing describes a set"):
        SetFeatures(statistics=[], size=False).fit(X)
    with pytest.raises(InputError, match="expecting 3 features"):
        SetFeatures().fit(X).transform(ragged(5, features=2))
