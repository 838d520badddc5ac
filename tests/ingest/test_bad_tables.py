"""Each fault is named with its file, column, row or set."""

import datetime

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.ingest import Columns, formats, read_npz, read_table

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
    names = frame.assign(colour=[f"name {k}" for k in range(len(frame))])
    refused(names, columns, "'colour'", "row 0", "--categories colour", "--hashed colour")
    numbers = frame.assign(colour=["1.5", "oops"] * 20)  # a typing error is no category
    refused(numbers, columns, "'colour'", "row 1", "'oops'")
    schema = read_table(frame, NUMBERS).schema
    path = tmp_path / "t.csv"
    with_value(frame, 7, "x1", "oops").to_csv(path, index=False)
    refused(path, schema, str(path), "'x1'", "row 7", "'oops'")


def test_dates_that_were_read_as_text(frame):
    """pandas.read_csv leaves dates as text; as categories they would be useless."""
    columns = Columns(set="basket", target="worth", features=("x1", "day"))
    days = pd.date_range("2024-05-01", periods=len(frame))
    written = frame.assign(day=days.strftime("%Y-%m-%d"))
    refused(written, columns, "'day'", "'2024-05-01'", "looks like dates", "pandas.to_datetime")
    assert read_table(frame.assign(day=days), columns).summary().dates == ("day",)


def test_messages_call_a_set_as_the_file_does(tmp_path):
    path = tmp_path / "t.csv"
    for written, called in (("12", "set 12"), ("012", "set '012'")):
        path.write_text(f"s,x,y\n{written},,1\n")
        refused(path, Columns(set="s", target="y"), called)
        path.write_text(f"s,x,y\n{written},1,1\n{written},1,2\n")
        refused(path, Columns(set="s", target="y"), called)


def test_text_far_down_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK", 1000)
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


@pytest.mark.parametrize("gap", ["NA", "", "nan"])
def test_a_missing_label_of_a_csv_file_is_no_class(tmp_path, gap):
    path = tmp_path / "t.csv"
    for others in (("1", "2"), ("tea", "cup")):
        path.write_text("s,x,y\n" + "".join(f"{y},0,{y}\n" for y in others) + f"c,0,{gap}\n")
        refused(path, Columns(set="s", target="y"), "row 2", "'y'", classify=True)


def test_one_class_only(frame):
    columns = Columns(set="basket", target="kind", features="x*")
    refused(frame[frame["kind"] == "odd"], columns, "'kind'", "only one class", "odd")


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
    for other in ({"target": "a"}, {"group": "a"}, {"text": "a"}):
        with pytest.raises(InputError, match="'a' is given two meanings"):
            Columns(set="s", weight="a", **other)
    with pytest.raises(InputError, match="rule for missing values"):
        Columns(set="a", missing="guess")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (datetime.time(12, 30), ("dates or times", "hours, minutes")),
        (["a", "b"], ("lists or records", "a column of each entry")),
        (b"x", ("binary", "numbers")),
    ],
)
def test_what_is_neither_text_nor_a_number_is_called_what_it_is(frame, values, words):
    frame["x3"] = pd.Series([values] * len(frame))
    refused(frame, NUMBERS, "'x3'", *words)
    refused(frame, Columns(set="basket", target="x3", features="x1"), "'x3'", words[0])
    if isinstance(values, list):
        refused(frame, Columns(set="x3", features="x1"), "'x3'", *words)
        refused(frame, Columns(set="basket", features="x3", categories="x3"), "'x3'", *words)


def test_amounts_are_no_classes(frame, tmp_path):
    columns = Columns(set="basket", target="worth", features="x1")
    frame.to_csv(tmp_path / "t.csv", index=False)
    late = tmp_path / "late.csv"  # a fraction only after whole numbers decided the type
    late.write_text("basket,worth,x1\n" + "".join(f"{k},{k},0\n" for k in range(9)) + "9,0.5,0\n")
    for table in (frame, tmp_path / "t.csv", late):
        refused(table, columns, "'worth'", "fractions such as", "SetRegressor", classify=True)
    assert read_table(late, columns).sets.y[-1] == 0.5


def test_names_may_look_like_fractions(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("s,x,release\n1,0,1.5\n2,1,2.0-beta\n")
    columns = Columns(set="s", target="release")
    assert read_table(path, columns).schema.classes == ("1.5", "2.0-beta")


def test_several_targets_that_are_no_labels(frame):
    columns = Columns(set="basket", target=("shop", "worth"), features="x1")
    row = int(np.argmax(~frame["shop"].isin((0, 1))))
    refused(frame, columns, "'shop'", f"row {row}", "0 and 1", classify=True)
    columns = Columns(set="basket", target=("kind", "worth"), features="x1")
    for classify in (False, True):
        refused(frame, columns, "'kind'", "names classes", "0 and 1", classify=classify)


def test_text_where_a_network_knows_an_amount(frame):
    schema = read_table(frame, NUMBERS).schema
    refused(frame.assign(worth=frame["kind"]), schema, "'worth'", "text")


def test_the_rule_for_missing_values_is_chosen_in_training(frame):
    columns = Columns(set="basket", features=("x1", "colour"), categories="colour")
    schema = read_table(frame, columns).schema
    for column, value in (("x1", None), ("colour", None), ("colour", "violet")):
        refused(
            with_value(frame, 9, column, value).astype({"x1": float}),
            schema,
            "row 9",
            "Choose it when training",
            "--missing",
        )


def test_npz_file_as_a_table(tmp_path):
    """Named columns of an .npz file are those of the same table in another format."""
    X, offsets = np.array([[1.7e9, 2], [1.7e9 + 1, 3], [1.7e9 + 2, np.nan]]), np.array([0, 2, 3])
    label, kind, known = np.array([1.5, 2.5]), np.array(["a", "b", "a"]), np.array([[1, 2], [3, 4]])
    path = tmp_path / "t.npz"
    np.savez(path, X=X, offsets=offsets, label=label, kind=kind, known=known, ids=[b"p", b"q"])
    frame = pd.DataFrame({"set": ["p", "p", "q"], "X[0]": X[:, 0], "X[1]": X[:, 1]})
    frame["label"], frame["kind"] = label[[0, 0, 1]], kind
    frame[["known[0]", "known[1]"]] = known[[0, 0, 1]]
    columns = Columns(
        set="set", target="label", categories="kind", covariates="known", missing="mean"
    )
    one, two = read_table(path, columns), read_table(frame, columns)
    assert one.schema == two.schema
    for name in ("instances", "offsets", "y", "covariates", "ids"):
        np.testing.assert_array_equal(getattr(one.sets, name), getattr(two.sets, name))
    for arrays, words in [
        ({"X": np.ones((3, 2, 2)), "offsets": offsets}, "which are no columns"),
        ({"X": X, "offsets": np.array([0, 0, 3])}, "set 0 has no instances"),
        ({"X": X}, "the file has no offsets"),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(InputError, match=words):
            read_table(path, columns)


def test_npz_labels(tmp_path):
    path = tmp_path / "t.npz"
    parts = {"X": np.ones((3, 2)), "offsets": np.array([0, 1, 3])}
    np.savez(path, **parts, y=np.array(["tea", "cup"]))
    assert read_npz(path).classes == ("cup", "tea")
    assert read_npz(path).sets.y.tolist() == [1, 0]
    assert read_npz(path, labels=False).sets.y is None
    for y in (np.array([["tea"], ["cup"]]), np.array([b"tea", b"cup"]), np.array([1j, 2])):
        np.savez(path, **parts, y=y)
        with pytest.raises(InputError, match=r"t\.npz: y holds"):
            read_npz(path)
    np.savez(path, **parts, y=np.array([1, 0]))
    assert read_npz(path).classes is None
    np.savez(path, **parts, y=np.array([20_000_000, 20_000_001]))
    assert read_npz(path).sets.y.tolist() == [20_000_000, 20_000_001]


def test_npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return tmp_path / "t.npz"

    good = {"X": np.ones((3, 2)), "offsets": np.array([0, 1, 3]), "y": np.array([0.0, 1.0])}
    assert read_npz(write(**good)).sets.sizes.tolist() == [1, 2]
    for change, words in [
        ({"offsets": np.array([0, 0, 3])}, "set 0 has no instances"),
        ({"X": np.full((3, 2), np.nan)}, "set 0"),
        ({"X": np.array([["a"], ["b"], ["c"]])}, "numbers"),
        ({"X": 1.7e9 + np.arange(6.0).reshape(3, 2)}, "column 0 lies between"),
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


def test_sparse_columns_are_read_as_dense_ones(frame):
    sparse = frame.assign(x2=pd.arrays.SparseArray(frame["x2"]))
    found, expected = (read_table(f, NUMBERS).sets.instances for f in (sparse, frame))
    np.testing.assert_array_equal(found, expected)


def test_columns_of_unusual_types(frame):
    intervals = frame.assign(x2=pd.cut(frame["x1"], 3).astype("interval[float64]"))
    refused(intervals, NUMBERS, "'x2'")
    columns = Columns(set="basket", target="worth", features="x*", categories="x2")
    refused(intervals, columns, "'x2'")
    refused(frame.assign(x2=[2**70] * 40), NUMBERS, "beyond 64 bits")


@pytest.mark.parametrize("name", ["features", "categories", "target", "order", "weight", "set"])
@pytest.mark.parametrize("value", [float("nan"), 3, [1.5]])
def test_columns_are_named_by_text(name, value):
    with pytest.raises(InputError, match=f"{name} must be"):
        Columns(**{"set": "s", name: value})


def test_a_file_without_column_names(tmp_path):
    (tmp_path / "t.csv").write_text("0,3.5,1.25,17\n0,2.5,1.75,17\n")
    refused(tmp_path / "t.csv", NUMBERS, "unknown column", "first row looks like data")
