"""Training sets are known again; sets of unseen sizes are warned of."""

import shutil

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError, SizeWarning
from capnets.estimators import SetRegressor, predicting
from capnets.estimators.predicting import predict_table
from capnets.estimators.runs import evaluate_run
from capnets.export import Engine, export
from capnets.ingest import Columns
from capnets.learn.seen import are_seen, read_keys, set_keys
from capnets.sets import Sets
from training_runs import train_run

COLUMNS = Columns(set="s", target="y", features=("a", "b"))
QUICK = {"members": 1, "orders": 1, "epochs": 1, "hidden": 4, "random_state": 0}


def frame_of(count=20, seed=0, size=3):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(count * size, 2)), columns=["a", "b"])
    frame["s"] = np.repeat([f"{seed}-{k}" for k in range(count)], size)
    frame["y"] = frame.groupby("s")["a"].transform("sum")
    return frame


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    estimator = SetRegressor("c-gru", columns=COLUMNS, **QUICK)
    return train_run(tmp_path_factory.mktemp("seen") / "run", frame_of(), estimator)


def test_keys_depend_on_content_alone():
    generator = np.random.default_rng(0)
    X = [generator.normal(size=(k % 4 + 1, 3)).astype(np.float32) for k in range(30)]
    keys = set_keys(Sets.from_arrays(X))
    assert len(np.unique(keys)) == 30
    turned = set_keys(Sets.from_arrays([x[::-1] for x in reversed(X)]))
    np.testing.assert_array_equal(turned[::-1], keys)
    assert are_seen(Sets.from_arrays(X[:3]), keys[1:]).tolist() == [False, True, True]
    assert not are_seen(Sets.from_arrays(X[:3]), None).any()


def test_evaluation_leaves_out_the_sets_of_training(run):
    found = evaluate_run(run.folder, frame_of())
    assert (found["sets"], found["trained_on"]) == (4, 16)
    test = run.metrics["test"]
    assert {name: found[name] for name in test} == pytest.approx(test)
    more = evaluate_run(run.folder, pd.concat([frame_of(), frame_of(5, seed=1)]))
    assert (more["sets"], more["trained_on"]) == (9, 16)
    whole = evaluate_run(run.folder, frame_of(), include_training=True)
    assert (whole["sets"], whole["trained_on"]) == (20, 16)


def test_nothing_left_to_test_on(tmp_path):
    model = SetRegressor("c-gru", columns=COLUMNS, **QUICK).fit(frame_of())
    folder = model.save(tmp_path / "run").folder
    np.testing.assert_array_equal(read_keys(folder), np.unique(model.training_keys_))
    with pytest.raises(InputError, match="all 20 sets were trained on"):
        evaluate_run(folder, frame_of())
    again = SetRegressor.load(folder).save(tmp_path / "copy").folder
    np.testing.assert_array_equal(read_keys(again), read_keys(folder))


def test_damaged_keys_are_not_taken_for_none(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    path = tmp_path / "run" / "training_sets.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"training_sets.safetensors is damaged .*train again"):
        evaluate_run(tmp_path / "run", frame_of())


@pytest.mark.parametrize("source", ["run", "estimator", "export"])
def test_engines_warn_of_other_sizes(run, tmp_path, source):
    made = {"run": run, "estimator": SetRegressor.load(run.folder), "export": tmp_path / "x"}
    export(run, tmp_path / "x")
    engine = Engine(made[source])
    with pytest.warns(SizeWarning, match=r"1 of 2 sets .* \(3 to 3 instances\), e.g. set 1 with 5"):
        engine.predict([np.ones((3, 2)), np.ones((5, 2))])
    engine.predict([np.ones((3, 2))])
    assert Engine(run.model).trained_sizes is None


@pytest.mark.parametrize("size", [1, 5])
def test_other_sizes_are_warned_of(run, tmp_path, size):
    model = SetRegressor.load(run.folder)
    other = frame_of(4, seed=2, size=size)
    with pytest.warns(SizeWarning, match=r"4 of 4 sets .* \(3 to 3 instances\), e.g. set 2-0"):
        model.predict(other)
    with pytest.warns(SizeWarning):
        predict_table(model, other, tmp_path / "p.csv")
    model.predict(frame_of(4, seed=2))


def test_sets_without_names_are_numbered_across_pieces(tmp_path, monkeypatch):
    X = [np.full((2, 1), k, dtype=np.float32) for k in range(6)]
    np.savez(tmp_path / "t.npz", X=np.concatenate(X), offsets=np.arange(0, 13, 2))
    model = SetRegressor("c-deepset", **QUICK).fit(X, np.arange(6.0))
    monkeypatch.setattr(predicting, "INSTANCES", 4)
    predict_table(model, tmp_path / "t.npz", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["set"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
