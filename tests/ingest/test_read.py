"""Read tables into sets: rows, columns and order."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.ingest import Columns, Schema, formats, read_table
from capnets.ingest import sources as sources_module
from capnets.sets import Sets
from ingest.written import NUMBERS, write


def slow_sets(frame, features, target):
    """The same by pandas, set by set, in order of appearance."""
    names = list(dict.fromkeys(frame["basket"]))
    parts = [frame[frame["basket"] == n] for n in names]
    return names, [p[features].to_numpy(float) for p in parts], [p[target].iloc[0] for p in parts]


@pytest.mark.parametrize("kind", ["frame", "arrow", ".parquet", ".csv", ".tsv", ".feather"])
def test_every_format_gives_the_same_sets(frame, tmp_path, kind, monkeypatch):
    for module in (formats, sources_module):
        monkeypatch.setattr(module, "ROWS", 6)  # so that sets cross batches
    table = {"frame": frame, "arrow": pa.Table.from_pandas(frame)}.get(kind)
    if table is None:
        table = write(frame, tmp_path / f"t{kind}")
    sets = read_table(table, NUMBERS).sets
    names, instances, y = slow_sets(frame, ["x1", "x2"], "worth")
    assert sets.ids.tolist() == names
    assert sets.y.tolist() == y
    for k, expected in enumerate(instances):
        np.testing.assert_allclose(sets[k], expected, rtol=1e-6)


def test_table_rows_keep_their_position(frame):
    sets = read_table(frame, NUMBERS).sets
    np.testing.assert_array_equal(sets.instances[:, 0], frame["x1"].astype("float32"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=40))
def test_order_column_sorts_within_sets_and_ties_keep_row_order(rows):
    frame = pd.DataFrame(rows, columns=["s", "o"]).assign(x=np.arange(len(rows)))
    sets = read_table(frame, Columns(set="s", features="x", order="o")).sets
    for k, name in enumerate(sets.ids):
        mine = frame[frame["s"] == name].sort_values("o", kind="stable")
        assert sets[k][:, 0].tolist() == mine["x"].tolist()


def test_mean_of_the_training_rows_fills_gaps_of_later_tables(frame, tmp_path):
    frame.loc[[3, 8], "x1"] = np.nan
    columns = Columns(set="basket", target="worth", features="x*", missing="mean")
    for folder in (None, tmp_path / "sets"):
        table = read_table(frame, columns, folder=folder)
        mean = np.float32(frame["x1"].mean())
        np.testing.assert_allclose(table.sets.instances[[3, 8], 0], mean, rtol=1e-6)
        later = read_table(frame.assign(x1=np.nan), table.schema).sets
        np.testing.assert_allclose(later.instances[:, 0], mean, rtol=1e-6)


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
    assert isinstance(sets.instances, np.memmap)
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
    assert Sets.load(folder).instances.shape == (20, 2)


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


class Stream:
    """A frame of another library: it only streams Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_that_streams_arrow(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    found, expected = read_table(Stream(table), NUMBERS), read_table(frame, NUMBERS)
    same(found.sets, expected.sets)


def test_json_lines(frame, tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    frame.to_json(path, orient="records", lines=True, double_precision=15)
    same(read_table(path, NUMBERS).sets, read_table(frame, NUMBERS).sets)
    path.write_text(path.read_text() + "{oops\n")
    with pytest.raises(InputError, match=r"t\.jsonl cannot be read"):
        read_table(path, NUMBERS)


def test_folders_of_parquet_files(frame, tmp_path):
    for shop, part in frame.groupby("shop"):
        folder = tmp_path / "t" / f"shop={shop}"
        folder.mkdir(parents=True)
        write(part.drop(columns="shop"), folder / "part.parquet")
    ordered = frame.sort_values("shop", kind="stable")
    columns = Columns(set="basket", target="worth", features=("x*", "shop"))
    same(read_table(tmp_path / "t", columns).sets, read_table(ordered, columns).sets)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no Parquet file in this folder"):
        read_table(tmp_path / "empty", columns)


def test_bytes_are_no_categories(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    place = table.schema.get_field_index("colour")
    table = table.set_column(place, "colour", table["colour"].cast(pa.binary()))
    columns = Columns(set="basket", features=("x1", "colour"), categories="colour")
    with pytest.raises(InputError, match="'colour' holds"):
        read_table(table, columns)


def same(found, expected):
    for name in ("instances", "index", "offsets", "y", "ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.feature_names == expected.feature_names
