"""Batch prediction: every engine gives the numbers of one process."""

import contextlib
import subprocess
import sys
import time

import fsspec
import numpy as np
import pandas as pd
import pyarrow.dataset as pads
import pytest

from capnets.batch import ENGINES, predict, predict_dataset
from capnets.batch.pieces import POSITION, Pieces
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns
from processes import Command

KEEP = ["basket", "key", "prediction", "added_value"]


def baskets(count: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    owner = rng.permutation(np.repeat(np.arange(count), rng.integers(1, 6, count)))
    frame = pd.DataFrame({"basket": [f"b{k}" for k in owner], "key": np.arange(len(owner))})
    frame["price"] = rng.uniform(1, 9, len(frame))
    frame["kind"] = rng.choice(["tea", "cup"], len(frame))
    frame["worth"] = frame.groupby("basket").price.transform("sum")
    return frame


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return baskets()


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    columns = Columns(set="basket", target="worth", features=("price", "kind"), categories="kind")
    # One order, and no column that gives it: the order of the rows matters.
    fitted = SetRegressor(
        "c-gru", columns=columns, members=1, epochs=2, orders=1, random_state=0
    ).fit(table)
    return fitted.save(tmp_path_factory.mktemp("runs") / "run").folder


@pytest.fixture
def parts(table, tmp_path):
    """Partitioned Parquet whose files cut sets in two; one file has missing keys."""
    folder = tmp_path / "data"
    folder.mkdir()
    keyed = table.drop(columns="worth").astype({"kind": "category"})
    keyed["note"] = pd.array([None if k < 5 else 2**60 + k for k in keyed.key], dtype="Int64")
    files = [keyed.iloc[rows] for rows in np.array_split(np.arange(len(keyed)), 3)]
    for k, rows in enumerate(files):
        (folder / f"third={k}").mkdir()
        rows.to_parquet(folder / f"third={k}" / "rows.parquet", index=False)
    assert set(files[0].basket) & set(files[1].basket)
    return folder


class TestPredict:
    def test_values_sum_to_the_prediction(self, table, run):
        found = predict(table, run)
        sums = found.groupby("basket").added_value.sum()
        firsts = found.groupby("basket").prediction.first()
        base = (firsts - sums).to_numpy()
        np.testing.assert_allclose(base, base[0], atol=1e-4)

    def test_equals_the_estimator(self, table, run):
        estimator = SetRegressor.load(run)
        found = predict(table, run)
        assert found.index.equals(table.index)
        expected = pd.Series(estimator.predict(table), index=estimator.set_ids(table))
        np.testing.assert_allclose(found.prediction, expected[found.basket], rtol=1e-6)
        np.testing.assert_allclose(found.added_value, estimator.added_values(table), rtol=1e-6)

    def test_keeps_keys_and_drops_features(self, table, run):
        assert {"basket", "key"} <= set(predict(table, run))
        assert "price" not in predict(table, run)

    def test_empty(self, table, run):
        found = predict(table.iloc[:0], run)
        assert list(found) == list(predict(table, run))
        assert len(found) == 0

    def test_classes(self, table, tmp_path):
        frame = table.assign(rich=np.where(table.worth > 12, "yes", "no")).drop(columns="worth")
        columns = Columns(set="basket", target="rich", features=("price", "kind"))
        columns = Columns(**{**columns.to_dict(), "categories": "kind"})
        model = SetClassifier("c-gru", columns=columns, members=1, epochs=2, random_state=0)
        found = predict(frame, model.fit(frame))
        shares = found[["probability_no", "probability_yes"]]
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
        assert set(found.prediction) <= {"yes", "no"}

    def test_several_labels(self, table):
        frame = table.assign(rich=table.worth > 12, dear=table.price > 5)
        frame["dear"] = frame.groupby("basket").dear.transform("max")
        columns = Columns(set="basket", target=("rich", "dear"), features="price")
        model = SetClassifier("c-gru", columns=columns, members=1, epochs=2, random_state=0)
        frame = frame.astype({"rich": int, "dear": int})
        found, ids = predict(frame, model.fit(frame)), model.set_ids(frame)
        expected = pd.DataFrame(model.predict(frame), index=ids).loc[found.basket]
        np.testing.assert_array_equal(found[["prediction_rich", "prediction_dear"]], expected)

    def test_arrays_are_refused(self):
        model = SetRegressor("c-gru", members=1, epochs=1).fit(
            [np.ones((2, 3))] * 8, np.arange(8.0)
        )
        with pytest.raises(InputError, match="trained on a table"):
            predict(pd.DataFrame({"a": [1.0]}), model)


def engine_marks(name: str):
    marks = [pytest.mark.slow] if name == "dask" else [pytest.mark.slow, pytest.mark.engine]
    return pytest.param(name, marks=marks)


def needs(engine: str) -> None:
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}.get(engine, engine))


def check_equal(out, table, run) -> None:
    """Compare the files of an engine with the numbers of one process."""
    found = (
        pads.dataset(sorted(map(str, out.glob("*.parquet"))))
        .to_table()
        .to_pandas(types_mapper=pd.ArrowDtype)
    )
    found, expected = found.sort_values("key"), predict(table, run).sort_values("key")
    pd.testing.assert_frame_equal(
        found[KEEP].reset_index(drop=True), expected[KEEP].reset_index(drop=True),
        check_dtype=False, check_index_type=False, atol=1e-6,
    )  # fmt: skip
    assert found.third.nunique() == 3
    assert [*found.note] == [pd.NA] * 5 + [2**60 + k for k in range(5, len(table))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", [engine_marks(name) for name in ENGINES])
class TestEngines:
    def test_equals_one_process(self, table, run, parts, tmp_path, engine):
        needs(engine)
        address = (tmp_path / "out").as_uri()
        predict_dataset(parts.as_uri(), run, address, engine=engine, workers=2)
        check_equal(tmp_path / "out", table, run)

    def test_a_killed_worker_loses_nothing(self, table, run, parts, tmp_path, engine):
        needs(engine)
        out = tmp_path / "out"
        words = ["predict", run, parts, "--engine", engine, "--workers", 2, "--partitions", 12]
        command = [sys.executable, "-m", "capnets", *map(str, words), "-o", str(out)]
        with (tmp_path / "log").open("w") as log:
            driver = subprocess.Popen(command, stdout=log, stderr=log)
        killed = False
        while driver.poll() is None:
            if not killed and any(tmp_path.glob(".out.new/**/*.parquet")):
                killed = kill_worker(driver.pid)
            time.sleep(0.02)
        assert killed, "the work was done before a worker could be killed"
        assert driver.returncode == 0, (tmp_path / "log").read_text()
        check_equal(out, table, run)


def kill_worker(driver: int) -> bool:
    """Kill a worker process of an engine, as the system does when memory is short."""
    psutil = pytest.importorskip("psutil")
    for process in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = " ".join(process.cmdline())
            forked = "pyspark.daemon" in words and "pyspark.daemon" in " ".join(
                process.parent().cmdline()
            )
            # A node of Ray ends with its agents; workers are replaced.
            works = words.startswith("ray::") and "Agent" not in words
            if forked or works or "spawn_main" in words:
                process.kill()
                return True
    return False


def test_cutting_sets_would_change_the_numbers(table, run):
    halves = [predict(table.iloc[rows], run) for rows in np.array_split(np.arange(len(table)), 2)]
    whole = predict(table, run)
    assert not np.allclose(pd.concat(halves).prediction, whole.prediction, atol=1e-3)


class TestPieces:
    def test_any_file_system(self, table):
        files = fsspec.filesystem("memory")
        for k in range(2):
            with files.open(f"/shop/{k}.parquet", "wb") as file:
                table.iloc[k::2].to_parquet(file, index=False)
        pieces = Pieces("memory://shop")
        rows = pd.concat([pieces.read(k) for k in range(len(pieces))])
        assert [*rows.key] == [*table.key[::2], *table.key[1::2]]
        assert rows[POSITION].is_monotonic_increasing

    def test_large_files_are_read_by_row_group(self, table, tmp_path, monkeypatch):
        table.to_parquet(tmp_path / "all.parquet", index=False, row_group_size=50)
        monkeypatch.setattr("capnets.batch.pieces.LARGE", 0)
        pieces = Pieces(str(tmp_path))
        assert len(pieces) == -(-len(table) // 50)
        assert [*pd.concat([pieces.read(k) for k in range(len(pieces))]).key] == [*table.key]

    def test_a_damaged_file_is_named(self, table, tmp_path):
        table.to_parquet(tmp_path / "a.parquet")
        (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
        pieces = Pieces(str(tmp_path))
        with pytest.raises(InputError, match=r"b\.parquet"):
            pieces.read(1)

    @pytest.mark.parametrize(
        ("address", "message"),
        [("nowhere", "no such file"), ("moon://data", "moon"), (".", "no Parquet file")],
    )
    def test_bad_address(self, tmp_path, monkeypatch, address, message):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=message):
            Pieces(address)


class TestBadInput:
    def test_unknown_engine(self, run, tmp_path):
        with pytest.raises(InputError, match="did you mean 'dask'"):
            predict_dataset(tmp_path, run, tmp_path / "out", engine="dusk")

    def test_existing_output(self, run, tmp_path):
        with pytest.raises(InputError, match="exists"):
            predict_dataset(tmp_path, run, tmp_path, engine="dask")

    def test_workers_need_an_engine(self, run, tmp_path):
        command = Command(
            "predict", run, tmp_path, "--workers", 2, "-o", tmp_path / "o", log=tmp_path / "log"
        )
        assert command.wait() == 2
        assert "--engine" in command.output
