"""The summary before training says what was read and warns of what is probably wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from capnets.errors import DataWarning
from capnets.estimators import SetRegressor
from capnets.ingest import Columns, Summary, read_table
from capnets.ingest.summary import looks_like_data
from ingest.written import write
from ragged import QUICK

COLUMNS = Columns(
    set="basket", target="worth", features=("x1", "x2", "colour"), categories="colour"
)


def test_counts_and_names(frame, tmp_path):
    frame.loc[[3, 7], "x1"] = np.nan
    columns = Columns(**COLUMNS.to_dict() | {"missing": "mean", "group": "shop"})
    summary = read_table(write(frame, tmp_path / "t.parquet"), columns).summary()
    assert (summary.sets, summary.instances, summary.sizes) == (8, 40, (5.0, 5.0, 5.0))
    assert (summary.numbers, summary.categories) == (("x1", "x2"), ("colour",))
    assert summary.ignored == ("place", "kind")
    assert (summary.target, summary.missing, summary.warnings) == (("worth",), {"x1": 2}, ())
    assert Summary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary
    text = str(summary)
    for words in ("8 sets, 40 instances, 5 per set", "ignored: 2 columns (place, kind)", "x1 2"):
        assert words in text


def test_classes_are_counted(frame):
    summary = read_table(frame, Columns(set="basket", target="kind", features="x*")).summary()
    assert summary.labels == "2 classes, even (4), odd (4)"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(40), "'x1' counts the rows"),
        (np.arange(40, 0, -1) + 1e9, "counts the rows"),
        (np.full(40, 2.5), r"'x1' is constant \(2.5\)"),
        (np.r_[np.random.default_rng(0).normal(size=39), 1e15], r"'x1' holds the value 1e\+15"),
    ],
)
def test_suspicious_columns_are_named(frame, values, words):
    frame["x1"] = values
    (warning,) = read_table(frame, COLUMNS).summary().warnings
    assert pd.Series([warning]).str.contains(words).all(), warning


def test_outliers_are_warned_of_when_fitting():
    """In Python too, where no summary is printed."""
    X = list(np.random.default_rng(0).normal(size=(12, 3, 2)))
    X[3][1, 0] = 1e15
    with pytest.warns(DataWarning, match=r"feature 0 holds the value 1e\+15, while most lie"):
        SetRegressor(**QUICK).fit(X, np.arange(12.0))


def test_heavy_tails_are_not_outliers(frame):
    frame["x1"] = np.exp(np.random.default_rng(0).normal(size=40) * 2)
    assert not read_table(frame, COLUMNS).summary().warnings


def test_a_text_file_without_a_header(frame, tmp_path):
    numbers = frame[["shop", "x1", "x2", "worth"]].sort_values("shop")
    numbers["worth"] = numbers["shop"] * 2.5
    path = tmp_path / "t.csv"
    numbers.to_csv(path, index=False, header=False)
    names = path.read_text().splitlines()[0].split(",")
    columns = Columns(set=names[0], target=names[3], features=tuple(names[1:3]))
    if len(set(names)) == 4:
        warnings = read_table(path, columns).summary().warnings
        assert any("first row" in text and "looks like data" in text for text in warnings)
    assert not looks_like_data(("set", "y", "0", "1", "2", "3", "4"))
    assert looks_like_data(("3", "1.25", "-0.5"))


def test_lists_of_arrays_have_a_summary_too():
    from capnets.estimators.inputs import read

    X = [np.eye(3)[:k] for k in (1, 2, 3)]
    assert read(X, None).summary().sizes == (1.0, 2.0, 3.0)


def test_covariates_and_order_are_named(frame):
    named = Columns(set="basket", target="worth", features="x1", covariates="age", order="x2")
    summary = read_table(frame.assign(age=30.0), named).summary()
    assert (summary.covariates, summary.order) == (("age",), "x2")
    assert "covariates: 1 column (age)\norder of the instances: x2" in str(summary)


def test_sets_of_one_instance_are_pointed_out(frame):
    rows = pd.concat([frame] * 2, ignore_index=True).assign(basket=lambda f: f.index)
    assert any("one instance" in text for text in read_table(rows, COLUMNS).summary().warnings)
