"""Frames of pandas, polars, Arrow and DuckDB: in, and out as the same kind."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from capnets import Columns
from capnets.batch.frames import predict
from capnets.errors import InputError
from capnets.estimators import SetFeatures, SetKFold, SetRegressor
from ragged import QUICK, amounts, frame_of, ragged

COLUMNS = Columns(set="set", target="y")


@pytest.fixture(scope="module")
def plain():
    X = ragged(20)
    return frame_of(X, amounts(X)).reset_index(drop=True)


def kinds(frame):
    return {
        "polars": pl.from_pandas(frame),
        "lazy": pl.from_pandas(frame).lazy(),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "duckdb": duckdb.from_df(frame),
    }


ANSWERS = {
    "polars": pl.DataFrame, "lazy": pl.DataFrame, "arrow": pa.Table, "duckdb": pa.Table,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(plain):
    return SetRegressor(columns=COLUMNS, **QUICK | {"epochs": 2}).fit(plain)


@pytest.mark.parametrize("kind", list(ANSWERS))
def test_in_and_out(plain, fitted, kind):
    given = kinds(plain)[kind]
    found = SetRegressor(columns=COLUMNS, **QUICK | {"epochs": 2}).fit(given)
    np.testing.assert_array_equal(found.predict(given), fitted.predict(plain))
    np.testing.assert_array_equal(found.added_values(given), fitted.added_values(plain))
    np.testing.assert_array_equal(found.set_ids(given), fitted.set_ids(plain))
    answer = predict(given, fitted)
    assert isinstance(answer, ANSWERS[kind])
    expected = predict(plain, fitted)
    assert isinstance(expected, pd.DataFrame)
    pd.testing.assert_frame_equal(
        answer.to_pandas().astype(expected.dtypes.to_dict()), expected.reset_index(drop=True)
    )
    features = SetFeatures(columns=COLUMNS).fit(given).transform(given)
    assert isinstance(features, ANSWERS[kind])
    by_pandas = SetFeatures(columns=COLUMNS).fit(plain).transform(plain)
    np.testing.assert_array_equal(features.to_pandas().to_numpy(), by_pandas.to_numpy())


def test_splitters_take_frames_of_polars(plain):
    frame = pl.from_pandas(plain)
    by_pandas = SetKFold(4, set="set").split(plain)
    for one, two in zip(SetKFold(4, set="set").split(frame), by_pandas, strict=True):
        np.testing.assert_array_equal(one[1], two[1])
        assert not {*frame[one[0].tolist()]["set"]} & {*frame[one[1].tolist()]["set"]}


def test_faults(plain, fitted):
    with pytest.raises(InputError, match="unknown column 'y2'"):
        SetRegressor(columns=Columns(set="set", target="y2"), **QUICK).fit(pl.from_pandas(plain))
    with pytest.raises(InputError, match="frame is a list"):
        predict([1, 2], fitted)
