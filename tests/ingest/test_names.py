"""Categories, classes, sets and groups keep the names of the table, in every format."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.ingest import Columns, formats, read_table
from ingest.written import write


def test_categories_become_one_number_each(frame):
    columns = Columns(set="basket", features=("x1", "colour"), categories="colour")
    table = read_table(frame, columns)
    assert table.sets.feature_names == ("x1", "colour=blue", "colour=green", "colour=red")
    coded = table.sets.instances[:, 1:].argmax(1)
    assert [("blue", "green", "red")[k] for k in coded] == frame["colour"].tolist()
    assert (table.sets.instances[:, 1:].sum(1) == 1).all()


def test_booleans_and_pandas_categories_are_categories_by_themselves(frame):
    frame = frame.assign(colour=frame["colour"].astype("category"), cheap=frame["x1"] < 0)
    table = read_table(frame, Columns(set="basket", features=("colour", "cheap")))
    assert table.sets.feature_names[-2:] == ("cheap=False", "cheap=True")


def test_unseen_category_is_none_of_the_known_when_gaps_are_filled(frame):
    columns = Columns(set="basket", features="colour", categories="colour", missing="zero")
    schema = read_table(frame, columns).schema
    later = read_table(frame.assign(colour="violet"), schema).sets
    assert not later.instances.any()


def test_text_target_names_classes_and_a_later_table_uses_the_same_numbers(frame):
    table = read_table(frame, Columns(set="basket", target="kind", features="x*"))
    assert table.schema.classes == ("even", "odd")
    assert [table.schema.classes[int(k)] for k in table.sets.y] == [
        frame["kind"][frame["basket"] == i].iloc[0] for i in table.sets.ids
    ]
    only_odd = frame[frame["kind"] == "odd"]
    assert set(read_table(only_odd, table.schema).sets.y) == {1.0}


def test_numbers_name_classes_if_asked(frame):
    columns = Columns(set="basket", target="shop", features="x*")
    table = read_table(frame, columns, classify=True)
    assert table.schema.classes == (0, 1, 2, 3)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**64 - 1).map(str),
            st.integers(0, 30).map("{:03d}".format),
            st.floats(-100, 100).map(lambda x: f"{x:.2f}"),
            st.text("ab-1.", min_size=1, max_size=4),
        ),
        min_size=1, max_size=12,
    ).filter(lambda names: "-" not in names)
)  # fmt: skip
def test_sets_of_a_csv_file_are_called_as_the_file_calls_them(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "t.csv"
    path.write_text("s,x\n" + "".join(f"{name},{k}\n" for k, name in enumerate(names)))
    sets = read_table(path, Columns(set="s")).sets
    assert [str(i) for i in sets.ids.tolist()] == list(dict.fromkeys(names))


def test_categories_groups_and_classes_of_a_csv_file_keep_their_zeros(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("s,code,g,y\n1,007,01,010\n2,7,1,10\n3,007,01,10\n")
    columns = Columns(set="s", target="y", group="g", categories="code")
    table = read_table(path, columns, classify=True)
    assert table.sets.feature_names == ("code=007", "code=7")
    assert table.schema.classes == ("010", "10")
    assert table.groups.tolist() == [0, 1, 0]


def test_a_category_is_the_same_in_every_format(frame, tmp_path):
    columns = Columns(set="basket", features="x2", categories="x2")
    schema = read_table(frame, columns).schema
    expected = read_table(frame, schema).sets.instances
    for other in (frame, frame.astype({"x2": float}), frame.astype({"x2": str})):
        for kind in (".csv", ".parquet"):
            sets = read_table(write(other, tmp_path / f"t{kind}"), schema).sets
            np.testing.assert_array_equal(sets.instances, expected)


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_a_category_is_as_it_is_written_in_every_format(tmp_path, missing):
    names = ["1.0", "1", "NA", "nan", "true", "True", "x", "007"]
    frame = pd.DataFrame({"s": ["NA", "nan"] * 4, "code": names})
    columns = Columns(set="s", categories="code", missing=missing)
    paths = [write(frame, tmp_path / f"t{kind}") for kind in (".csv", ".parquet")]
    for path in paths:
        schema = read_table(path, columns).schema
        assert schema.feature_names == tuple(f"code={c}" for c in sorted(names))
        for other in paths:
            sets = read_table(other, schema).sets
            assert sets.ids.tolist() == ["NA", "nan"]
            assert (sets.instances.argmax(axis=1) == np.argsort(np.argsort(names))).all()
            assert (sets.instances.sum(axis=1) == 1).all()


def test_an_empty_field_is_no_category(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('s,code\na,x\na,\nb,""\n')
    sets = read_table(path, Columns(set="s", categories="code", missing="mean")).sets
    assert sets.instances.tolist() == [[1], [0], [0]]


def test_names_after_booleans_in_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK", 1000)
    path = tmp_path / "t.csv"
    booleans = "s,flag,x\n" + "true,true,0\nfalse,FALSE,1\n" * 100
    columns = Columns(set="s")
    path.write_text(booleans)
    schema = read_table(path, columns).schema
    assert schema.feature_names == ("flag=False", "flag=True", "x")
    path.write_text(booleans + "maybe,maybe,2\n")
    sets = read_table(path, columns).sets
    assert sets.ids.tolist() == ["true", "false", "maybe"]
    assert sets.feature_names == ("flag=FALSE", "flag=maybe", "flag=true", "x")
    with pytest.raises(InputError, match="unseen category 'maybe'"):
        read_table(path, schema)


def test_a_name_may_be_a_number_of_any_length(tmp_path):
    path, name = tmp_path / "t.csv", "1" * 400
    path.write_text(f"s,code,g,y,x\n{name},{name},{name},{name},0\n2,2,2,2,1\n")
    columns = Columns(set="s", target="y", group="g", categories="code")
    table = read_table(path, columns, classify=True)
    assert table.sets.ids.tolist() == [name, "2"]
    assert table.schema.classes == (name, "2")


@pytest.mark.parametrize("kind", ["frame", ".parquet", ".csv"])
@pytest.mark.parametrize("dtype", [int, float])
def test_classes_that_are_numbers_rise_and_stay_numbers(frame, tmp_path, kind, dtype):
    frame["rating"] = frame["shop"].map({0: 2, 1: 10, 2: 3, 3: 2}).astype(dtype)
    table = frame if kind == "frame" else write(frame, tmp_path / f"t{kind}")
    columns = Columns(set="basket", target="rating", features="x*")
    schema = read_table(table, columns, classify=True).schema
    assert schema.classes == (2, 3, 10)
    # A later table may hold them as another type.
    later = read_table(frame.astype({"rating": int}).astype({"rating": str}), schema).sets
    assert later.y.tolist() == read_table(table, schema).sets.y.tolist()


def test_a_class_of_a_category_that_no_set_has_is_none(frame):
    frame["kind"] = frame["kind"].astype("category").cat.add_categories("prime")
    columns = Columns(set="basket", target="kind", features="x*")
    assert read_table(frame, columns).schema.classes == ("even", "odd")


@pytest.mark.parametrize("kind", [int, bool, float])
def test_several_targets_are_labels_of_a_classifier(frame, kind):
    frame = frame.assign(a=(frame["shop"] > 1).astype(kind), b=(frame["kind"] == "odd").astype(int))
    table = read_table(
        frame, Columns(set="basket", target=("a", "b"), features="x*"), classify=True
    )
    assert table.schema.classes is None
    first = frame.drop_duplicates("basket")
    np.testing.assert_array_equal(table.sets.y, first[["a", "b"]].astype(float))
