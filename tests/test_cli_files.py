"""Commands on a user's file."""

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


QUICK = ["-m", "c-gru", "--members", 1, "--epochs", 3, "--features", "a", "--features", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["worth", "kind"])
def test_train_predict_evaluate(table, tmp_path, target):
    run, out = tmp_path / "run", tmp_path / "p.parquet"
    columns = ["--set-column", "basket", "--target", target]
    trained = json.loads(capnets("train", table, *columns, *QUICK, "-o", run, "--json"))
    assert trained["train_sets"] + trained["test_sets"] == 40
    told = json.loads(capnets("predict", run, table, "-o", out, "--json"))
    assert told == {"run": str(run), "out": str(out), "sets": 40}
    rows, given = pd.read_parquet(out), pd.read_parquet(table)
    assert sorted(rows["row"]) == list(range(len(given)))
    assert (given["basket"].to_numpy()[rows["row"]] == rows["set"]).all()
    sums = rows.groupby("set")["added_value" if target == "worth" else "added_value_up"].sum()
    if target == "worth":
        np.testing.assert_allclose(sums, rows.groupby("set")["prediction"].first(), atol=1e-4)
    else:
        shares = rows.groupby("set")["probability_up"].first()
        np.testing.assert_allclose(1 / (1 + np.exp(-sums)), shares, atol=1e-4)
        assert set(rows["prediction"]) <= {"up", "down"}
    measured = json.loads(capnets("evaluate", run, table, "--json"))
    assert ("r2" if target == "worth" else "accuracy") in measured
    assert not {"r2", "accuracy"} <= set(measured), "amounts are in any unit: none rounds to one"
    assert ("mse" in measured) == (target == "worth")
    capnets("predict", run, table, "-o", tmp_path / "p.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "p.csv"), rows, check_dtype=False)
    assert ".parquet or .csv" in capnets("predict", run, table, "-o", tmp_path / "p.txt", code=2)
    before = out.read_bytes()
    assert "exists" in capnets("predict", run, table, "-o", out, code=2)
    broken = tmp_path / "broken.parquet"
    given.drop(columns="b").to_parquet(broken)
    assert "'b'" in capnets("predict", run, broken, "-o", out, "--force", code=2)
    assert out.read_bytes() == before


@pytest.mark.slow
def test_groups_and_weights_are_for_training_only(table, tmp_path):
    frame = pd.read_parquet(table)
    numbers = frame["basket"].str[1:].astype(int)
    frame.assign(shop=numbers % 9, much=1.0 + numbers % 2).to_parquet(tmp_path / "g.parquet")
    columns = ["--set-column", "basket", "--target", "worth"]
    more = ["--group-column", "shop", "--weight-column", "much"]
    capnets("train", tmp_path / "g.parquet", *columns, *more, *QUICK, "-o", tmp_path / "r")
    answers = [
        json.loads(capnets("evaluate", tmp_path / "r", file, "--json"))
        for file in (tmp_path / "g.parquet", table)
    ]
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_faults_are_said_without_a_traceback(table, tmp_path):
    message = capnets("train", table, "-o", tmp_path / "r", code=2)
    assert "--set-column" in message
    assert "Traceback" not in message
    wrong = ["--set-column", "baskte", "--target", "worth"]
    assert "'basket'" in capnets("train", table, *wrong, "-o", tmp_path / "r", code=2)
    assert not (tmp_path / "r").exists()


COLUMNS = ["--set-column", "basket", "--target", "worth"]


@pytest.mark.slow
def test_settings_of_training_are_used(table, tmp_path):
    run = tmp_path / "run"
    done = subprocess.run(
        [
            sys.executable, "-c", "from capnets.cli import main; main()", "train", table, *COLUMNS,
            "--features", "a", "--members", "2", "--epochs", "5", "--batch-size", "7",
            "--learning-rate", "0.02", "--patience", "4", "--fixed-order", "--accumulate", "2",
            "-o", run,
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    config = json.loads((run / "config.json").read_text())
    recipe = config["recipe"]
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["patience"]) == (7, 0.02, 4)
    assert recipe["accumulate"] == 2
    assert (recipe["reshuffle"], config["data"]["orders"]) == (False, 1)
    assert recipe["weight_decay"] == 0.01  # the rest is as it would have been
    history = [json.loads(x) for x in (run / "history.jsonl").read_text().splitlines()]
    assert all(line["valid"] is not None for line in history)
    assert "network 2 of 2, epoch 5/5" in done.stderr or len(history) < 10
    assert "network 1 of 2, epoch 1/5" in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_export(table, tmp_path):
    run, out = tmp_path / "run", tmp_path / "onnx"
    settings = ["--members", 2, "--epochs", 1, "--features", "a", "--json"]
    capnets("train", table, *COLUMNS, *settings, "-o", run)
    card = json.loads(capnets("export", run, "--onnx", out, "--json"))
    assert card["instance"]["names"] == ["a"]
    assert card["prediction"]["names"] == ["worth"]
    assert card["difference"]["largest"] < 1e-4
    before = (out / "sets.onnx").read_bytes()
    assert "--force" in capnets("export", run, "--onnx", out, code=2)
    assert "no export" in capnets("export", run, "--onnx", run, code=2)
    (tmp_path / "file").write_text("mine")
    assert "no export" in capnets("export", run, "--onnx", tmp_path / "file", "--force", code=2)
    assert (tmp_path / "file").read_text() == "mine"
    assert (out / "sets.onnx").read_bytes() == before
    without = "import sys; sys.modules['onnxruntime'] = None; from capnets.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", without, "export", run, "--onnx", tmp_path / "new"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'capnets[onnx]'" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_documents(tmp_path):
    pytest.importorskip("sentence_transformers")
    path, run = tmp_path / "reviews.csv", tmp_path / "run"
    texts = ["Lovely! It fits.", "Too small. It tore.", "Fine."]
    pd.DataFrame({"review": texts * 4, "stars": [5, 1, 3] * 4}).to_csv(path, index=False)
    columns = ["--text-column", "review", "--target", "stars"]
    capnets("train", path, *columns, "--members", 1, "--epochs", 1, "-o", run, "--json")
    capnets("predict", run, path, "-o", tmp_path / "p.parquet")
    assert len(pd.read_parquet(tmp_path / "p.parquet")) == 20
    shown = json.loads(capnets("explain", run, path, "--sets", "1", "--json"))
    assert [i["name"] for i in shown[0]["instances"]] == ["Too small.", "It tore."]


def test_orders_and_priors(table, tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    capnets("train", table, *COLUMNS, *QUICK, "--sort", "worth", "-o", run)
    config = json.loads((run / "config.json").read_text())
    assert (config["model"]["order"], config["data"]["orders"]) == ("worth", 1)
    capnets("export", run, "--onnx", tmp_path / "graphs")
    capnets("train", table, *COLUMNS, *QUICK, "--consistent", 0.5, "-o", other)
    config = json.loads((other / "config.json").read_text())
    assert config["priors"] == [{"kind": "consistent", "weight": 0.5}]
    message = capnets(
        "train", table, *COLUMNS, *QUICK, "--sort", "prise", "-o", run, "--force", code=2
    )
    assert "unknown feature 'prise'" in message


def test_npz_files_take_the_options_of_columns(tmp_path):
    path, run, out = tmp_path / "t.npz", tmp_path / "run", tmp_path / "p.csv"
    X = np.arange(40.0)[:, None] % 7
    X[3] = np.nan
    offsets, y = np.arange(0, 41, 2), np.arange(20.0)
    np.savez(path, X=X, offsets=offsets, y=y, age=y % 3, ids=[f"s{k}" for k in range(20)])
    quick = ["-m", "c-gru", "--members", 1, "--epochs", 2, "-o", run]
    message = capnets("train", path, *quick, code=2)
    assert "nan" in message  # without options, the arrays are read as they are
    capnets("train", path, "--covariates", "age", "--missing", "mean", "--regress", *quick)
    capnets("predict", run, path, "-o", out)
    rows = pd.read_csv(out)
    assert rows["set"].tolist() == [f"s{k}" for k in np.repeat(np.arange(20), 2)]
    sums = rows.groupby("set")["added_value"].sum() + rows.groupby("set")["baseline"].first()
    np.testing.assert_allclose(sums, rows.groupby("set")["prediction"].first(), atol=1e-4)
    assert rows["baseline"].nunique() == 3  # one per age
    message = capnets("train", path, "--target", "worth", "-o", tmp_path / "r", code=2)
    assert "unknown column 'worth'" in message
    assert "set, X[0], y, age" in message
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_kinds_of_labels_are_detected(table, tmp_path):
    frame = pd.read_parquet(table)
    frame["rich"], frame["poor"] = frame["worth"] > 0.5, frame["worth"] < -0.5
    frame.to_csv(tmp_path / "t.csv", index=False)
    run, out = tmp_path / "run", tmp_path / "p.parquet"
    labels = ["--set-column", "basket", "--target", "rich", "--target", "poor"]
    capnets("train", tmp_path / "t.csv", *labels, *QUICK, "-o", run)
    capnets("predict", run, table, "-o", out)
    assert {"probability_rich", "added_value_poor"} <= set(pd.read_parquet(out))
    path, y = tmp_path / "t.npz", np.array(["up", "down"] * 10)
    np.savez(path, X=np.arange(20.0)[:, None], offsets=np.arange(21), y=y)
    capnets("train", path, "--members", 1, "--epochs", 1, "-o", tmp_path / "r")
    assert set(json.loads(capnets("evaluate", tmp_path / "r", path, "--json"))) >= {"accuracy"}
    message = capnets("predict", run, path, "-o", tmp_path / "q.parquet", code=2)
    assert "Choices: set, X[0], y" in message


@pytest.mark.slow
def test_a_network_is_chosen_and_evaluated_on_what_it_was_not_trained_on(table, tmp_path):
    run, out = tmp_path / "run", tmp_path / "p.parquet"
    auto = ["--members", 1, "--epochs", 2, "--features", "a", "--features", "b"]
    said = capnets("train", table, *COLUMNS, *auto, "-o", run)
    assert "Squared error on sets held out" in said
    assert len(json.loads((run / "config.json").read_text())["data"]["choice"]["compared"]) == 5
    found = json.loads(capnets("evaluate", run, table, "--json"))
    metrics = json.loads((run / "metrics.json").read_text())
    assert (found["sets"], found["trained_on"]) == (metrics["test_sets"], metrics["train_sets"])
    assert found["mse"] == pytest.approx(metrics["test"]["mse"], rel=1e-5)
    capnets("predict", run, table, "-o", out)
    rows = pd.read_parquet(out)
    sums = rows.groupby("set")["added_value"].sum()
    if "baseline" in rows:
        sums = sums + rows["baseline"][0]
    np.testing.assert_allclose(sums, rows.groupby("set")["prediction"].first(), atol=1e-4)
