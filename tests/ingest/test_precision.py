"""Numbers keep their precision, however large or far from zero."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capnets.ingest import Columns, Schema, formats, read_table
from ingest.written import write


def test_whole_numbers_in_the_first_csv_block_may_become_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK", 1000)
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{k},{k % 7},1" for k in range(1000))
    path.write_text(f"s,x,y\n{rows}\n1000,0.5,1\n")
    sets = read_table(path, Columns(set="s", target="y")).sets
    assert sets.instances[-1, 0] == 0.5
    assert sets.ids.dtype == np.int64


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
@pytest.mark.parametrize("first", [0, 2**53, 2**63])
def test_large_whole_numbers_stay_apart(tmp_path, kind, first):
    ids = np.arange(65, dtype=np.uint64) + np.uint64(first)
    frame = pd.DataFrame({"s": ids, "x": np.arange(65.0)})
    sets = read_table(write(frame, tmp_path / f"t{kind}"), Columns(set="s")).sets
    assert sets.ids.dtype.kind in "iu"
    assert (sets.ids.astype(np.uint64) == ids).all()


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
    np.testing.assert_allclose(
        table.sets.instances[:, 0], exact, rtol=0, atol=1e-4 * np.ptp(values)
    )


def test_an_offset_is_recorded_named_and_used_again(frame, tmp_path):
    frame["time"] = 1.7e9 + 10 * frame["x1"]
    frame["year"] = 2020 + frame["x2"] % 2
    columns = Columns(set="basket", target="worth", features=("x1", "time", "year"))
    path = write(frame, tmp_path / "t.csv")
    table = read_table(path, columns, folder=tmp_path / "sets")
    assert table.sets.feature_names == ("x1", "time-1700000000", "year")
    np.testing.assert_allclose(table.sets.instances[:, 1], 10 * frame["x1"], atol=1e-5)
    np.testing.assert_array_equal(table.sets.instances[:, 2], frame["year"])
    again = Schema.from_dict(table.schema.to_dict())
    later = read_table(frame.assign(time=1.7e9 + 3), again, labels=False).sets
    assert (later.instances[:, 1] == 3).all()


def test_gaps_are_filled_in_the_unit_of_the_column(frame):
    frame["time"] = 1.7e9 + 10 * frame["x1"]
    frame.loc[3, "time"] = np.nan
    mean = frame["time"].mean()
    for missing, fill in (("mean", mean), ("zero", 0.0)):
        table = read_table(frame, Columns(set="basket", features="time", missing=missing))
        (feature,) = table.schema.features
        assert feature.fill == pytest.approx(fill, abs=1e-5)
        assert table.sets.instances[3, 0] == pytest.approx(fill - feature.offset, abs=1e-5)


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
    assert np.isfinite(sets.instances).all()
    assert sets.instances[1, 0] == pytest.approx(sets.instances[[0, 2], 0].mean(), rel=1e-6)
