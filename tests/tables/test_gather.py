import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.sets import Sets
from capnets.tables import Columns, Schema, read_table
from capnets.tables import sources as sources_module

NUMBERS = Columns(set="basket", target="worth", features=("x*",))


def write(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    match path.suffix:
        case ".parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=7)
        case ".csv":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".feather":
            pyarrow.feather.write_feather(table, path)
    return path


def slow_sets(frame, features, target):
    """The same by pandas, set by set, in order of appearance."""
    names = list(dict.fromkeys(frame["basket"]))
    parts = [frame[frame["basket"] == n] for n in names]
    return names, [p[features].to_numpy(float) for p in parts], [p[target].iloc[0] for p in parts]


@pytest.mark.parametrize("kind", ["frame", "arrow", ".parquet", ".csv", ".tsv", ".feather"])
def test_every_format_gives_the_same_sets(frame, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sources_module, "ROWS", 6)  # so that sets cross batches
    table = {"frame": frame, "arrow": pa.Table.from_pandas(frame)}.get(kind)
    if table is None:
        table = write(frame, tmp_path / f"t{kind}")
    sets = read_table(table, NUMBERS).sets
    names, instances, y = slow_sets(frame, ["x1", "x2"], "worth")
    assert sets.ids.tolist() == names
    assert sets.y.tolist() == y
    for k, expected in enumerate(instances):
        np.testing.assert_allclose(sets[k], expected, rtol=1e-6)


def test_row_r_of_the_table_is_row_r_of_the_pool(frame):
    sets = read_table(frame, NUMBERS).sets
    np.testing.assert_array_equal(sets.pool[:, 0], frame["x1"].astype("float32"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=40))
def test_order_column_sorts_within_sets_and_ties_keep_row_order(rows):
    frame = pd.DataFrame(rows, columns=["s", "o"]).assign(x=np.arange(len(rows)))
    sets = read_table(frame, Columns(set="s", features="x", order="o")).sets
    for k, name in enumerate(sets.ids):
        mine = frame[frame["s"] == name].sort_values("o", kind="stable")
        assert sets[k][:, 0].tolist() == mine["x"].tolist()


def test_categories_become_one_number_each(frame):
    columns = Columns(set="basket", features=("x1", "colour"), categories="colour")
    table = read_table(frame, columns)
    assert table.sets.feature_names == ("x1", "colour=blue", "colour=green", "colour=red")
    coded = table.sets.pool[:, 1:].argmax(1)
    assert [("blue", "green", "red")[k] for k in coded] == frame["colour"].tolist()
    assert (table.sets.pool[:, 1:].sum(1) == 1).all()


def test_booleans_and_pandas_categories_are_categories_by_themselves(frame):
    frame = frame.assign(colour=frame["colour"].astype("category"), cheap=frame["x1"] < 0)
    table = read_table(frame, Columns(set="basket", features=("colour", "cheap")))
    assert table.sets.feature_names[-2:] == ("cheap=False", "cheap=True")


def test_mean_of_the_training_rows_fills_gaps_of_later_tables(frame, tmp_path):
    frame.loc[[3, 8], "x1"] = np.nan
    columns = Columns(set="basket", target="worth", features="x*", missing="mean")
    for folder in (None, tmp_path / "sets"):
        table = read_table(frame, columns, folder=folder)
        mean = np.float32(frame["x1"].mean())
        np.testing.assert_allclose(table.sets.pool[[3, 8], 0], mean, rtol=1e-6)
        later = read_table(frame.assign(x1=np.nan), table.schema).sets
        np.testing.assert_allclose(later.pool[:, 0], mean, rtol=1e-6)


def test_unseen_category_is_none_of_the_known_when_gaps_are_filled(frame):
    columns = Columns(set="basket", features="colour", categories="colour", missing="zero")
    schema = read_table(frame, columns).schema
    later = read_table(frame.assign(colour="violet"), schema).sets
    assert not later.pool.any()


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


def test_several_targets_and_groups(frame):
    frame = frame.assign(weight=frame["worth"] + 1)
    columns = Columns(
        set="basket", target=("worth", "shop"), features="x*", group="kind", weight="weight"
    )
    table = read_table(frame, columns)
    assert table.sets.y.shape == (8, 2)
    np.testing.assert_allclose(table.sets.weights, table.sets.y[:, 0] + 1)
    odd = table.groups == table.groups[0]
    assert odd.sum() == 4


def test_schema_survives_json(frame):
    import json

    columns = Columns(
        set="basket", target="kind", features=("x*", "colour"), categories="colour", missing="mean"
    )
    schema = read_table(frame, columns).schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_prediction_needs_no_target_and_ignores_extra_columns(frame):
    schema = read_table(frame, NUMBERS).schema
    later = frame.drop(columns=["worth"]).assign(more=1)
    sets = read_table(later, schema, labels=False).sets
    assert sets.y is None
    assert sets.feature_names == ("x1", "x2")


def test_folder_is_mapped_and_failure_leaves_the_earlier_sets(frame, tmp_path):
    folder = tmp_path / "sets"
    sets = read_table(frame, NUMBERS, folder=folder).sets
    assert isinstance(sets.pool, np.memmap)
    before = sorted(p.name for p in folder.iterdir())
    with pytest.raises(InputError, match="already holds sets"):
        read_table(frame, NUMBERS, folder=folder)
    bad = frame.copy()
    bad.loc[39, "x1"] = np.inf
    with pytest.raises(InputError, match="infinite"):
        read_table(bad, NUMBERS, folder=folder, force=True)
    assert sorted(p.name for p in folder.iterdir()) == before
    assert len(Sets.load(folder)) == 8
    read_table(frame.iloc[:20], NUMBERS, folder=folder, force=True)
    assert Sets.load(folder).pool.shape == (20, 2)


def test_whole_numbers_in_the_first_csv_block_may_become_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr(sources_module, "BLOCK", 1000)
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{k},{k % 7},1" for k in range(1000))
    path.write_text(f"s,x,y\n{rows}\n1000,0.5,1\n")
    sets = read_table(path, Columns(set="s", target="y")).sets
    assert sets.pool[-1, 0] == 0.5
    assert sets.ids.dtype == np.int64


# Names as they are written -----------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
@pytest.mark.parametrize("first", [0, 2**53, 2**63])
def test_large_whole_numbers_stay_apart(tmp_path, kind, first):
    ids = np.arange(65, dtype=np.uint64) + np.uint64(first)
    frame = pd.DataFrame({"s": ids, "x": np.arange(65.0)})
    sets = read_table(write(frame, tmp_path / f"t{kind}"), Columns(set="s")).sets
    assert sets.ids.dtype.kind in "iu"
    assert (sets.ids.astype(np.uint64) == ids).all()


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
    expected = read_table(frame, schema).sets.pool
    for other in (frame, frame.astype({"x2": float}), frame.astype({"x2": str})):
        for kind in (".csv", ".parquet"):
            sets = read_table(write(other, tmp_path / f"t{kind}"), schema).sets
            np.testing.assert_array_equal(sets.pool, expected)


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
            assert (sets.pool.argmax(axis=1) == np.argsort(np.argsort(names))).all()
            assert (sets.pool.sum(axis=1) == 1).all()


def test_an_empty_field_is_no_category(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('s,code\na,x\na,\nb,""\n')
    sets = read_table(path, Columns(set="s", categories="code", missing="mean")).sets
    assert sets.pool.tolist() == [[1], [0], [0]]


def test_names_after_booleans_in_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sources_module, "BLOCK", 1000)
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


# The index of a frame ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "place"])
def test_the_index_of_a_stored_frame_is_no_feature(frame, tmp_path, name):
    columns = Columns(set="basket", target="worth", categories=("colour", "kind"))
    numbers = frame[["basket", "x1", "colour", "worth", "kind"]]
    stored = numbers.sample(frac=1, random_state=0).rename_axis(name)
    expected = read_table(stored, columns).sets.feature_names
    table = pa.Table.from_pandas(stored)
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    stored.to_csv(tmp_path / "t.csv", index_label="")
    for given_table in (table, *(tmp_path / f"t.{k}" for k in ("parquet", "feather", "csv"))):
        assert read_table(given_table, columns).sets.feature_names == expected


def test_the_index_of_a_stored_frame_may_be_named(frame, tmp_path):
    frame.set_index(["basket", "x1"]).to_parquet(tmp_path / "t.parquet")
    sets = read_table(tmp_path / "t.parquet", NUMBERS).sets
    assert sets.feature_names == ("x2",)
    named = Columns(set="basket", features=("x1", "x2"))
    assert set(read_table(tmp_path / "t.parquet", named).sets.feature_names) == {"x1", "x2"}


# Digits ------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.floats(-1e12, 1e12),
    st.floats(1e-3, 1e6),
    st.lists(st.integers(0, 10**6), min_size=2, max_size=20),
)
def test_columns_far_from_zero_keep_their_digits(far, width, steps):
    values = far + width * 1e-6 * np.array(steps)
    assume(np.ptp(values) > 0)
    table = read_table(pd.DataFrame({"s": range(len(values)), "t": values}), Columns(set="s"))
    exact = values - table.schema.features[0].offset
    np.testing.assert_allclose(table.sets.pool[:, 0], exact, rtol=0, atol=1e-4 * np.ptp(values))


def test_an_offset_is_recorded_named_and_used_again(frame, tmp_path):
    frame["time"] = 1.7e9 + 10 * frame["x1"]
    frame["year"] = 2020 + frame["x2"] % 2
    columns = Columns(set="basket", target="worth", features=("x1", "time", "year"))
    path = write(frame, tmp_path / "t.csv")
    table = read_table(path, columns, folder=tmp_path / "sets")
    assert table.sets.feature_names == ("x1", "time-1700000000", "year")
    np.testing.assert_allclose(table.sets.pool[:, 1], 10 * frame["x1"], atol=1e-5)
    np.testing.assert_array_equal(table.sets.pool[:, 2], frame["year"])
    again = Schema.from_dict(table.schema.to_dict())
    later = read_table(frame.assign(time=1.7e9 + 3), again, labels=False).sets
    assert (later.pool[:, 1] == 3).all()


def test_gaps_are_filled_in_the_unit_of_the_column(frame):
    frame["time"] = 1.7e9 + 10 * frame["x1"]
    frame.loc[3, "time"] = np.nan
    mean = frame["time"].mean()
    for missing, fill in (("mean", mean), ("zero", 0.0)):
        table = read_table(frame, Columns(set="basket", features="time", missing=missing))
        (feature,) = table.schema.features
        assert feature.fill == pytest.approx(fill, abs=1e-5)
        assert table.sets.pool[3, 0] == pytest.approx(fill - feature.offset, abs=1e-5)


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
@pytest.mark.parametrize("dtype", ["int64", "datetime64[ns]", "datetime64[s]"])
def test_an_order_of_large_numbers_or_times_keeps_their_digits(tmp_path, kind, dtype):
    places = np.random.default_rng(0).permutation(160)
    far = (175 * 10**16 if dtype != "datetime64[s]" else 175 * 10**7) + places
    frame = pd.DataFrame({"s": 0, "x": places, "o": far.astype(dtype)})
    path = write(frame, tmp_path / f"t{kind}")
    assert read_table(path, Columns(set="s", order="o")).sets[0][:, 0].tolist() == list(range(160))


@pytest.mark.parametrize("far", [0, 2**60])
def test_a_gap_among_large_whole_numbers_is_filled(far):
    values = pa.array([far + 2**54 + 1, None, far + 1], pa.int64())
    table = pa.table({"s": [0, 0, 0], "x": values})
    sets = read_table(table, Columns(set="s", missing="mean")).sets
    assert np.isfinite(sets.pool).all()
    assert sets.pool[1, 0] == pytest.approx(sets.pool[[0, 2], 0].mean(), rel=1e-6)


# Classes -----------------------------------------------------------------------------------------


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
