"""Train on a file: held-out sets, recorded settings, changed files."""

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.export import export
from capnets.ingest import Columns
from capnets.training.callbacks import EpochEnd
from training_runs import train_run

SETTINGS = {"members": 1, "orders": 1, "epochs": 2, "hidden": 4, "random_state": 0}


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(60, 2)), columns=["a", "b"])
    frame["s"] = np.repeat(np.arange(20), 3)
    frame["y"] = frame.groupby("s")["a"].transform("sum")
    return frame


COLUMNS = Columns(set="s", target="y")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_instances_of_a_file_are_mapped_and_give_the_same_network(frame, tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    getattr(frame, f"to_{kind}")(path, index=False)
    asked = SetRegressor("c-rnn", columns=COLUMNS, **SETTINGS)
    problem = asked.problem(path, folder=tmp_path / "sets")
    assert isinstance(problem.train.instances, np.memmap)
    train_run(tmp_path / "mapped", path, asked, scratch=tmp_path / "scratch")
    train_run(tmp_path / "held", frame, asked)
    mapped, held = (SetRegressor.load(tmp_path / name) for name in ("mapped", "held"))
    np.testing.assert_allclose(mapped.predict(frame), held.predict(frame), rtol=1e-5, atol=1e-6)


def test_the_fingerprint_is_that_of_the_data(frame, tmp_path):
    cards = []
    for number, table in enumerate((frame, frame.copy(), frame.assign(a=frame.a + 1))):
        model = SetRegressor("deepset", columns=COLUMNS, **SETTINGS).fit(table)
        run = model.save(tmp_path / f"run{number}")
        assert run.config.data["fingerprint"] == SetRegressor.load(run.folder).fingerprint_
        cards.append(export(run, tmp_path / f"onnx{number}").training["data_fingerprint"])
    assert cards[0] == cards[1] != cards[2]


def test_an_unfinished_run_does_not_go_on_with_other_data(frame, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(line):
        raise StoppedError

    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    model = SetRegressor("deepset", columns=COLUMNS, **SETTINGS)
    with pytest.raises(StoppedError):
        train_run(tmp_path / "run", path, model, callbacks=[EpochEnd(stop)])
    frame.assign(a=frame.a * 2).to_parquet(path)
    with pytest.raises(InputError, match="other settings"):
        train_run(tmp_path / "run", path, model, resume=True)
    frame.to_parquet(path)
    assert train_run(tmp_path / "run", path, model, resume=True).metrics["epochs"] == 2


def test_changes_of_a_recipe(frame):
    changed = SetRegressor("deepset", columns=COLUMNS, recipe={"batch_size": 3}, **SETTINGS)
    assert changed.fit(frame).recipe_.batch_size == 3
    assert changed.recipe_.weight_decay == 0.01
    wrong = SetClassifier("deepset", columns=COLUMNS, recipe={"bach_size": 3}, **SETTINGS)
    with pytest.raises(InputError, match="batch_size"):
        wrong.fit(frame.assign(y=frame.s % 2))
