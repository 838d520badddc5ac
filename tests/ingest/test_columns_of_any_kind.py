"""Vectors, dates, text, hashed categories, addresses, and formats of other packages."""

import datetime
from dataclasses import replace
from importlib.metadata import EntryPoint

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from capnets.errors import InputError
from capnets.ingest import Columns, Schema, formats, read_table
from capnets.ingest.dates import ages_and_gaps, weekdays
from capnets.ingest.encode import bucket

NUMBERS = Columns(set="basket", target="worth", features=("x*",))


def same(found, expected):
    for name in ("instances", "index", "offsets", "y", "ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def by_set(table, name):
    """Return one feature of all sets as lists."""
    sets = table.sets
    k = sets.feature_names.index(name)
    return {str(sets.ids[s]): sets[s][:, k].tolist() for s in range(len(sets))}


# Vectors ------------------------------------------------------------------------------------------


def with_vectors(frame):
    vectors = np.random.default_rng(0).normal(size=(len(frame), 3)).astype(np.float32)
    return frame.assign(emb=list(vectors)), vectors


@pytest.mark.parametrize("fixed", [False, True])
def test_a_column_of_vectors_is_a_column_per_entry(frame, fixed, tmp_path):
    frame, vectors = with_vectors(frame)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if fixed:
        place = table.schema.get_field_index("emb")
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 3)
        table = table.set_column(place, "emb", flat)
    columns = Columns(set="basket", target="worth", features=("emb", "x1"))
    found = read_table(table, columns)
    assert set(found.sets.feature_names) == {"emb[0]", "emb[1]", "emb[2]", "x1"}
    spread = frame.drop(columns="emb")
    for k in range(3):
        spread[f"e{k}"] = vectors[:, k]
    names = [f.replace("emb[", "e").replace("]", "") for f in found.sets.feature_names]
    expected = read_table(spread, replace(columns, features=("e?", "x1"))).sets
    order = [expected.feature_names.index(n) for n in names]
    np.testing.assert_array_equal(found.sets.instances, expected.instances[:, order])
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15)
    again = read_table(tmp_path / "t.jsonl", found.schema).sets
    np.testing.assert_allclose(again.instances, found.sets.instances, rtol=1e-6)


def test_vectors_of_several_lengths_and_missing_ones(frame):
    frame, vectors = with_vectors(frame)
    columns = Columns(set="basket", target="worth", features="emb")
    frame.at[7, "emb"] = vectors[7][:2]
    with pytest.raises(InputError, match=r"row 7 .*'emb': 2 numbers, but 3 in the first row"):
        read_table(frame, columns)
    frame.at[7, "emb"] = None
    with pytest.raises(InputError, match=r"row 7 .*no value"):
        read_table(frame, columns)
    filled = read_table(frame, replace(columns, missing="zero")).sets
    assert not filled.instances[7].any()


# Dates --------------------------------------------------------------------------------------------


def visits():
    days = ["2024-01-01", "2024-01-03", "2024-02-01", "2024-01-31T12:00", "2024-01-02"]
    when = pd.to_datetime(pd.Series(days), format="ISO8601")
    return pd.DataFrame({"who": ["a", "a", "b", "b", "a"], "when": when, "y": [1, 1, 2, 2, 1]})


def test_dates_follow_the_stated_rule(tmp_path):
    columns = Columns(set="who", target="y")
    table = read_table(visits(), columns)
    assert table.sets.feature_names == (
        *(f"when={day}" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")),
        "when age", "when gap",
    )  # fmt: skip
    assert by_set(table, "when age") == {"a": [2.0, 0.0, 1.0], "b": [0.0, 0.5]}
    assert by_set(table, "when gap") == {"a": [0.0, 1.0, 1.0], "b": [0.5, 0.0]}
    assert by_set(table, "when=Mon") == {"a": [1.0, 0.0, 0.0], "b": [0.0, 0.0]}
    assert "1 date (when) (weekday, age and gap in days)" in str(table.summary())
    for name in ("t.csv", "t.parquet"):
        visits().to_csv(tmp_path / name, index=False) if name == "t.csv" else visits().to_parquet(
            tmp_path / name
        )
        same(read_table(tmp_path / name, columns).sets, table.sets)
    kept = read_table(visits(), columns, folder=tmp_path / "kept").sets
    same(kept, table.sets)
    again = read_table(visits(), Schema.from_dict(table.schema.to_dict())).sets
    same(again, table.sets)


def test_weekdays_are_those_of_the_calendar():
    days = np.arange(-800, 20000, 13)
    found = weekdays(days.astype(float)).argmax(axis=1)
    epoch = datetime.date(1970, 1, 1)
    expected = [(epoch + datetime.timedelta(days=int(d))).weekday() for d in days]
    assert found.tolist() == expected


def test_gaps_sum_to_the_age_of_the_oldest():
    draw = np.random.default_rng(0)
    sets, days = draw.integers(0, 20, size=200), draw.integers(0, 999, size=200).astype(float)
    found = ages_and_gaps(days, sets)
    for k in range(20):
        own = found[sets == k]
        assert own[:, 1].sum() == own[:, 0].max() == np.ptp(days[sets == k])
        assert (own >= 0).all()


def test_missing_dates():
    frame = visits()
    frame.loc[1, "when"] = None
    with pytest.raises(InputError, match=r"row 1 .*'when': no value"):
        read_table(frame, Columns(set="who", target="y"))
    table = read_table(frame, Columns(set="who", target="y", missing="mean"))
    assert not table.sets.instances[1].any()
    assert table.missing["when"] == 1
    assert by_set(table, "when age")["a"] == [1.0, 0.0, 0.0]


def test_dates_become_numbers_only_where_dates_were_learned(frame):
    schema = read_table(visits(), Columns(set="who", target="y")).schema
    with pytest.raises(InputError, match="'when' holds"):
        read_table(visits().assign(when="soon"), schema)


# Text and hashed categories -----------------------------------------------------------------------


def test_text_with_few_values_is_a_category(frame):
    found = read_table(frame, Columns(set="basket", target="worth", features=("x1", "colour")))
    expected = read_table(
        frame, Columns(set="basket", target="worth", features=("x1", "colour"), categories="colour")
    )
    same(found.sets, expected.sets)
    assert found.schema.features == expected.schema.features


def test_hashed_categories(frame):
    names = [f"merchant {k}" for k in range(len(frame))]
    columns = Columns(
        set="basket", target="worth", features=("name", "x1"), hashed="name", buckets=8
    )
    found = read_table(frame.assign(name=names), columns)
    assert len(found.sets.feature_names) == 9
    own = [k for k, n in enumerate(found.sets.feature_names) if n.startswith("name#")]
    rows = found.sets.instances[:, own]
    assert rows.argmax(axis=1).tolist() == [bucket(name, 8) for name in names]
    assert (rows.sum(axis=1) == 1).all()
    unseen = read_table(frame.assign(name="never seen"), found.schema, labels=False)
    assert (unseen.sets.instances[:, own].sum(axis=1) == 1).all()
    gap = frame.assign(name=[None, *names[1:]])
    with pytest.raises(InputError, match=r"row 0 .*'name': no value"):
        read_table(gap, columns)
    assert not read_table(gap, replace(columns, missing="zero")).sets.instances[0, own].any()


def test_buckets_are_the_same_everywhere():
    assert [bucket(name, 64) for name in ("a", "b", "2", "2.0")] == [47, 53, 44, 44]
    counts = np.bincount([bucket(str(k), 16) for k in range(16000)], minlength=16)
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    with pytest.raises(InputError, match="buckets must be from 2"):
        Columns(set="s", buckets=1)
    with pytest.raises(InputError, match="unknown column 'nmae'"):
        read_table(pd.DataFrame({"s": [1], "name": ["a"]}), Columns(set="s", hashed="nmae"))


# Data sets, addresses, formats of other packages --------------------------------------------------


def test_arrow_data_sets_are_not_held_in_memory(frame, tmp_path):
    frame.iloc[:20].to_parquet(tmp_path / "0.parquet")
    frame.iloc[20:].to_parquet(tmp_path / "1.parquet")
    data = ds.dataset([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    same(read_table(data, NUMBERS).sets, read_table(frame, NUMBERS).sets)


def test_addresses(frame, tmp_path):
    memory = fsspec.filesystem("memory")
    with memory.open("/capnets/t.parquet", "wb") as file:
        frame.to_parquet(file)
    expected = read_table(frame, NUMBERS).sets
    same(read_table("memory://capnets/t.parquet", NUMBERS).sets, expected)
    same(read_table("memory://capnets/", NUMBERS).sets, expected)
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_allclose(
        read_table(f"file://{tmp_path}/t.csv", NUMBERS).sets.instances, expected.instances
    )
    changed = frame.assign(x1=0.0)
    with memory.open("/capnets/t.parquet", "wb") as file:
        changed.to_parquet(file)
    same(read_table("memory://capnets/t.parquet", NUMBERS).sets, read_table(changed, NUMBERS).sets)
    for address, message in (
        ("memory://capnets/nothing.parquet", "there is no such file"),
        ("nonsense://t.parquet", "cannot be opened"),
        ("memory://capnets/t.xyz", "there is no such file"),
    ):
        with pytest.raises(InputError, match=f"{address}.*{message}"):
            read_table(address, NUMBERS)


def json_records(path):
    return pd.read_json(path)


def test_packages_add_readers(frame, tmp_path, monkeypatch):
    points = [EntryPoint(".recs", f"{__name__}:json_records", "capnets.readers")]
    monkeypatch.setattr(formats, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: json_records)
    formats.readers.cache_clear()
    try:
        frame.to_json(tmp_path / "t.recs", orient="records", double_precision=15)
        same(read_table(tmp_path / "t.recs", NUMBERS).sets, read_table(frame, NUMBERS).sets)
        formats.readers.cache_clear()
        points[0] = EntryPoint(".csv", "other:reader", "capnets.readers")
        with pytest.raises(InputError, match=r"'.csv' of capnets.readers \(other:reader\)"):
            read_table(tmp_path / "t.recs", NUMBERS)
    finally:
        formats.readers.cache_clear()
