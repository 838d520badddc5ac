"""Each fault is named with its file, column, row or set."""

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.tables import Columns, read_npz, read_table, sources

NUMBERS = Columns(set="basket", target="worth", features=("x*",))


def refused(table, columns, *words, **options):
    with pytest.raises(InputError) as caught:
        read_table(table, columns, **options)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


def with_value(frame, row, column, value):
    frame = frame.copy()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    "columns",
    [
        Columns(set="baskte"),
        Columns(set="basket", target="wort"),
        Columns(set="basket", features=("x1", "xx*")),
        Columns(set="basket", categories="colur"),
        Columns(set="basket", order="plase"),
        Columns(set="basket", group="shoop"),
    ],
)
def test_missing_column_is_named_with_the_near_ones(frame, columns, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    refused(path, columns, str(path), "unknown column", "basket")


def test_duplicate_columns(frame, tmp_path):
    double = pd.concat([frame, frame[["x1"]]], axis=1)
    refused(double, NUMBERS, "two columns 'x1'")
    path = tmp_path / "t.csv"
    double.to_csv(path, index=False)
    refused(path, NUMBERS, str(path), "two columns 'x1'")


def test_target_that_varies(frame):
    frame.loc[20, "worth"] = 99
    refused(frame, NUMBERS, "'worth'", repr(frame.loc[20, "basket"]), "row 20", "99", "constant")


def test_text_where_numbers_belong(frame, tmp_path):
    columns = Columns(set="basket", target="worth", features=("x1", "colour"))
    refused(frame, columns, "'colour'", "row 0", "categories")
    schema = read_table(frame, NUMBERS).schema
    path = tmp_path / "t.csv"
    with_value(frame, 7, "x1", "oops").to_csv(path, index=False)
    refused(path, schema, str(path), "'x1'", "row 7", "'oops'")


def test_text_far_down_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 1000)
    path = tmp_path / "t.csv"
    path.write_text("s,x\n" + "1,2.5\n" * 1600 + "1,oops\n")
    refused(path, Columns(set="s"), str(path), "'x'", "oops", "1602")


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_infinite_values(frame, value):
    frame.loc[11, "x1"] = value
    for missing in ("refuse", "mean"):
        columns = Columns(set="basket", target="worth", features="x*", missing=missing)
        refused(frame, columns, "row 11", "'x1'", repr(frame.loc[11, "basket"]), "infinite")


def test_missing_values_are_refused_unless_there_is_a_rule(frame):
    frame.loc[11, "x1"] = np.nan
    refused(frame, NUMBERS, "row 11", "'x1'", "no value", "mean")


@pytest.mark.parametrize("column", ["basket", "worth", "place"])
def test_missing_set_target_or_order(frame, column):
    columns = Columns(set="basket", target="worth", features="x*", order="place")
    refused(with_value(frame, 5, column, None), columns, "row 5", repr(column), "no value")


def test_one_class_only(frame):
    columns = Columns(set="basket", target="kind", features="x*")
    refused(frame[frame["kind"] == "odd"], columns, "'kind'", "one class only", "odd")


def test_unseen_category_and_unknown_label(frame):
    columns = Columns(set="basket", target="kind", features="colour", categories="colour")
    schema = read_table(frame, columns).schema
    odd = with_value(frame, 9, "colour", "violet")
    refused(odd, schema, "row 9", "'colour'", "'violet'", "blue, green, red")
    refused(frame.assign(kind="prime"), schema, "'kind'", "row 0", "'prime'", "even, odd")


def test_missing_feature_at_prediction(frame):
    schema = read_table(frame, NUMBERS).schema
    refused(frame.drop(columns="x2"), schema, "'x2'", labels=False)


def test_names_are_not_categories():
    frame = pd.DataFrame({"s": range(300), "name": [f"n{k}" for k in range(300)]})
    refused(frame, Columns(set="s", categories="name"), "'name'", "more than 256")


def test_no_rows(frame):
    refused(frame.iloc[:0], NUMBERS, "no rows")


def test_file_that_is_not_there_or_damaged_or_of_another_kind(tmp_path):
    refused(tmp_path / "t.parquet", NUMBERS, "t.parquet", "no such file")
    refused(tmp_path / "t.xlsx", NUMBERS, "t.xlsx", ".parquet")
    for suffix in ("parquet", "feather"):
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(b"nothing of the kind")
        refused(path, NUMBERS, str(path), f"cannot be read as {suffix}")


def test_column_with_two_meanings():
    with pytest.raises(InputError, match="'a' is given two meanings"):
        Columns(set="a", target="a")
    with pytest.raises(InputError, match="rule for missing values"):
        Columns(set="a", missing="guess")


def test_npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return tmp_path / "t.npz"

    good = {"X": np.ones((3, 2)), "offsets": np.array([0, 1, 3]), "y": np.array([0.0, 1.0])}
    assert read_npz(write(**good)).sizes.tolist() == [1, 2]
    for change, words in [
        ({"offsets": np.array([0, 0, 3])}, "set 0 has no instances"),
        ({"X": np.full((3, 2), np.nan)}, "set 0"),
        ({"X": np.array([["a"], ["b"], ["c"]])}, "numbers"),
        ({"offsets": np.array([0, 1, 4])}, "offsets"),
        ({"y": np.array([1.0])}, "y has 1 entries"),
    ]:
        with pytest.raises(InputError, match=words) as caught:
            read_npz(write(**(good | change)))
        assert "t.npz" in str(caught.value)
    with pytest.raises(InputError, match="has no y"):
        read_npz(write(X=good["X"], offsets=good["offsets"]))
    (tmp_path / "t.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="cannot be read as npz"):
        read_npz(tmp_path / "t.npz")
