"""Target columns of files: detection and messages."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.estimators.problems import file_problem
from capnets.ingest import Columns
from ragged import QUICK


@pytest.fixture
def file(tmp_path):
    frame = pd.DataFrame({"s": np.repeat(range(12), 2), "a": np.arange(24.0)})
    frame["whole"] = frame["s"] % 5 + 1
    frame["amount"] = frame["s"] + 0.5
    frame["binary"] = frame["s"] % 2
    frame["other"] = (frame["s"] // 2) % 2
    frame["kind"] = np.where(frame["s"] % 2, "up", "down")
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    ("target", "classify", "kind", "said"),
    [
        ("amount", None, "amount", "an amount: 'amount' holds numbers; --classify"),
        ("whole", None, "amount", "holds numbers with 5 distinct whole values, 1 to 5; --classify"),
        ("whole", True, "class", "classes (1, 2, 3, 4, 5): as requested"),
        ("binary", None, "class", "classes (0, 1): 'binary' holds 0 and 1 only; --regress"),
        ("binary", False, "amount", "an amount: as requested"),
        ("kind", None, "class", "classes (down, up): 'kind' holds text"),
        (("binary", "other"), None, "labels", "labels, each present or absent: 'binary', 'other'"),
    ],
)
def test_said_and_read(file, target, classify, kind, said):
    columns = Columns(set="s", target=target, features="a")
    problem, note = file_problem(file, columns, classify=classify)
    assert problem.target.kind == kind
    assert said in note


@pytest.mark.parametrize("text", ["%d/%m/%Y", "%Y.%m.%d"])
def test_dates_as_text_are_classes_and_said_to_be(tmp_path, text):
    days = [date(2024, 1 + k % 3, 1 + k).strftime(text) for k in range(9)]
    frame = pd.DataFrame({"s": range(9), "a": range(9), "when": days})
    frame.to_csv(tmp_path / "t.csv", index=False)
    columns = Columns(set="s", target="when", features="a")
    problem, note = file_problem(str(tmp_path / "t.csv"), columns)
    assert problem.target.kind == "class"
    assert "look like dates, each a class of its own; to predict a time, write numbers" in note


def test_dates_are_no_amounts(tmp_path):
    frame = pd.DataFrame({"s": range(9), "a": range(9)})
    frame["when"] = pd.date_range("2024-01-01", periods=9)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(
            InputError, match=r"'when' holds dates or times .*\(days since some day"
        ):
            file_problem(str(tmp_path / name), Columns(set="s", target="when", features="a"))


def test_zeros_and_ones_are_read_as_the_classes_that_classify_gives(file):
    columns = Columns(set="s", target="binary", features="a")
    found, asked = (file_problem(file, columns, classify=c)[0] for c in (None, True))
    assert found.target == asked.target
    assert found.schema == asked.schema
    np.testing.assert_array_equal(found.train.y, asked.train.y)


@pytest.mark.parametrize(("unit", "advice"), [(1e-40, r"1e\+40"), (1e38, "1e-38"), (1e30, "1e-30")])
def test_labels_that_float32_cannot_square_are_refused(unit, advice):
    """They would train a network that predicts NaN, or diverge at every learning rate."""
    X = list(np.random.default_rng(0).normal(size=(12, 3, 2)))
    with pytest.raises(InputError, match=f"another unit: multiply them by {advice}"):
        SetRegressor(**QUICK).fit(X, np.linspace(0.5, 1, 12) * unit)


@pytest.mark.parametrize("unit", [1e-17, 1e17])
def test_labels_of_any_other_unit_are_learned_alike(unit):
    X, y = list(np.random.default_rng(0).normal(size=(12, 3, 2))), np.linspace(0.5, 1, 12)
    found, expected = (SetRegressor(**QUICK).fit(X, y * u).predict(X) / u for u in (unit, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("given", [{"network": 5}, {"network": {"dropout": "x"}}])
def test_nonsense_settings_of_a_network_are_refused(given):
    with pytest.raises(InputError, match=r"network is 5|dropout must be"):
        SetRegressor(**QUICK, **given).fit([np.ones((2, 2))] * 12, np.arange(12.0))


def test_a_task_is_not_a_file():
    with pytest.raises(InputError, match="capnets task train US:digits"):
        file_problem("US:digits", None)
