"""Commands on a file of one's own, as a user types them."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest


def capnets(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-c", "from capnets.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 5, size=40)
    frame = pd.DataFrame(generator.normal(size=(sizes.sum(), 2)), columns=["a", "b"])
    frame["basket"] = np.repeat([f"s{k}" for k in range(40)], sizes)
    total = frame.groupby("basket")["a"].transform("sum")
    frame["worth"], frame["kind"] = total, np.where(total > 0, "up", "down")
    path = tmp_path / "t.parquet"
    frame.sample(frac=1, random_state=0).to_parquet(path)
    return path


QUICK = ["--members", 1, "--epochs", 3, "--features", "a", "--features", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["worth", "kind"])
def test_train_predict_evaluate(table, tmp_path, target):
    run, out = tmp_path / "run", tmp_path / "p.parquet"
    columns = ["--set-column", "basket", "--target", target]
    trained = json.loads(capnets("train", table, *columns, *QUICK, "-o", run, "--json"))
    assert trained["train_sets"] + trained["test_sets"] == 40
    capnets("predict", run, table, "-o", out)
    rows, given = pd.read_parquet(out), pd.read_parquet(table)
    assert sorted(rows["row"]) == list(range(len(given)))
    assert (given["basket"].to_numpy()[rows["row"]] == rows["set"]).all()
    sums = rows.groupby("set")["added_value"].sum()
    if target == "worth":
        np.testing.assert_allclose(sums, rows.groupby("set")["prediction"].first(), atol=1e-4)
    else:
        shares = rows.groupby("set")["probability_up"].first()
        np.testing.assert_allclose(1 / (1 + np.exp(-sums)), shares, atol=1e-4)
        assert set(rows["prediction"]) <= {"up", "down"}
    measured = json.loads(capnets("evaluate", run, table, "--json"))
    assert "accuracy" in measured
    assert ("mse" in measured) == (target == "worth")
    before = out.read_bytes()
    assert "exists" in capnets("predict", run, table, "-o", out, code=2)
    broken = tmp_path / "broken.parquet"
    given.drop(columns="b").to_parquet(broken)
    assert "'b'" in capnets("predict", run, broken, "-o", out, "--force", code=2)
    assert out.read_bytes() == before


@pytest.mark.slow
def test_faults_are_said_without_a_traceback(table, tmp_path):
    message = capnets("train", table, "-o", tmp_path / "r", code=2)
    assert "--set-column" in message
    assert "Traceback" not in message
    wrong = ["--set-column", "baskte", "--target", "worth"]
    assert "'basket'" in capnets("train", table, *wrong, "-o", tmp_path / "r", code=2)
    assert not (tmp_path / "r").exists()
