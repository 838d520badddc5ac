"""Batch prediction: every engine gives the numbers of one process."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from capnets.batch import ENGINES, predict, predict_dataset
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns

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
    fitted = SetRegressor("c-gru", columns=columns, members=1, epochs=2, random_state=0).fit(table)
    return fitted.save(tmp_path_factory.mktemp("runs") / "run").folder


@pytest.fixture
def parts(table, tmp_path):
    """Partitioned Parquet whose files cut sets in two."""
    folder = tmp_path / "data"
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[rows].drop(columns="worth").to_parquet(folder / f"part-{k}.parquet", index=False)
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
    slow = name != "dask"
    return pytest.param(name, marks=[pytest.mark.slow, pytest.mark.engine] if slow else [])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", [engine_marks(name) for name in ENGINES])
class TestEngines:
    def test_equals_one_process(self, table, run, parts, tmp_path, engine):
        pytest.importorskip({"dask": "distributed", "spark": "pyspark"}.get(engine, engine))
        out = predict_dataset(parts, run, tmp_path / "out", engine=engine, workers=2)
        found = pd.concat([pd.read_parquet(p) for p in sorted(out.glob("*.parquet"))])
        expected = predict(table, run).sort_values("key").reset_index(drop=True)
        found = found.sort_values("key").reset_index(drop=True)
        pd.testing.assert_frame_equal(found[KEEP], expected[KEEP], check_dtype=False, atol=1e-6)


KILLED = """
import sys
from capnets.batch import predict_dataset
if __name__ == "__main__":
    predict_dataset(*sys.argv[1:4], engine="dask", workers=2, partitions=40)
"""


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(table, run, parts, tmp_path):
    psutil = pytest.importorskip("psutil")
    script, out = tmp_path / "work.py", tmp_path / "out"
    script.write_text(KILLED)
    work = subprocess.Popen([sys.executable, str(script), str(parts), str(run), str(out)])
    killed = False
    while work.poll() is None:
        if not killed and any(tmp_path.glob(".out.*.part/*.parquet")):
            children = psutil.Process(work.pid).children(recursive=True)
            workers = [c for c in children if "spawn_main" in " ".join(c.cmdline())]
            workers[0].kill()
            killed = True
        time.sleep(0.05)
    assert killed, "the work was done before a worker could be killed"
    assert work.returncode == 0
    found = pd.concat([pd.read_parquet(p) for p in out.glob("*.parquet")]).sort_values("key")
    expected = predict(table, run).sort_values("key")
    np.testing.assert_allclose(found.added_value, expected.added_value, atol=1e-6)


class TestBadInput:
    def test_unknown_engine(self, run, tmp_path):
        with pytest.raises(InputError, match="did you mean 'dask'"):
            predict_dataset(tmp_path, run, tmp_path / "out", engine="dusk")

    def test_existing_output(self, run, tmp_path):
        with pytest.raises(InputError, match="exists"):
            predict_dataset(tmp_path, run, tmp_path, engine="dask")
