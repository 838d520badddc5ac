"""Loggers of TensorBoard, MLflow and Weights & Biases write what the history holds."""

import json

import numpy as np
import pandas as pd
import pytest

from capnets import Columns
from capnets.batch.frames import predict
from capnets.batch.pyfunc import save_model
from capnets.errors import InputError, check_extra
from capnets.estimators import SetRegressor
from capnets.training import loggers
from capnets.training.loggers import MLflow, TensorBoard, WandB, flat, logger_of
from ragged import QUICK, amounts, frame_of, ragged

X = ragged(20)
Y = amounts(X)


def fitted(*callbacks, **settings):
    model = SetRegressor(**QUICK | {"epochs": 3} | settings)
    return model.fit(X, Y, callbacks=callbacks)


def test_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = fitted(TensorBoard(tmp_path / "tb"), members=2)
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    found = events.Scalars("train")
    assert [e.step for e in found] == list(range(6))
    expected = [line["train"] for line in model.history_]
    np.testing.assert_allclose([e.value for e in found], expected, rtol=1e-5)
    assert "settings/text_summary" in events.Tags()["tensors"]


@pytest.mark.filterwarnings("ignore")
def test_mlflow(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    address = (tmp_path / "mlruns").as_uri()
    logger = MLflow(address, experiment="sets")
    model = fitted(logger)
    client = MlflowClient(address)
    run = client.get_run(logger.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params["recipe.epochs"] == "3"
    assert run.data.params["seed"] == "0"
    found = client.get_metric_history(logger.run_id, "train")
    assert [m.step for m in found] == [0, 1, 2]
    expected = [line["train"] for line in model.history_]
    np.testing.assert_allclose([m.value for m in found], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_wandb_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    fitted(WandB("sets", folder=tmp_path))
    (run,) = (tmp_path / "wandb").glob("offline-run-*")
    assert next(run.glob("*.wandb")).stat().st_size > 0
    summary = run / "files" / "wandb-summary.json"
    if summary.exists():
        assert json.loads(summary.read_text())["_step"] == 2


def test_faults(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="unknown logger 'tensorbord': did you mean 'tensorboard'"):
        logger_of("tensorbord=x")
    with pytest.raises(InputError, match="unknown mode 'sometimes'"):
        WandB(mode="sometimes")
    with pytest.raises(InputError, match="callbacks must be a list"):
        SetRegressor(**QUICK).fit(X, Y, callbacks=[print])
    monkeypatch.setattr(
        loggers,
        "check_extra",
        lambda module, extra, purpose: check_extra("no_" + module, extra, purpose=purpose),
    )
    with pytest.raises(
        InputError, match=r"TensorBoard needs no_tensorboard: pip install 'capnets\[loggers\]'"
    ):
        logger_of(f"tensorboard={tmp_path}")


def test_devices():
    cpu = fitted(device="cpu")
    np.testing.assert_array_equal(cpu.predict(X), fitted().predict(X))
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        fitted(device="gpu")
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="device 'cuda' is not available here"):
            fitted(device="cuda")


def test_flat_settings():
    assert flat({"a": {"b": {"c": 1}}, "d": [2]}) == {"a.b.c": 1, "d": [2]}


@pytest.mark.filterwarnings("ignore")
def test_a_run_as_an_mlflow_model(tmp_path):
    import mlflow.pyfunc

    frame = frame_of(X, Y)
    columns = Columns(set="set", target="y")
    SetRegressor(columns=columns, **QUICK | {"epochs": 1}).fit(frame).save(tmp_path / "run")
    save_model(tmp_path / "run", tmp_path / "model")
    assert not list((tmp_path / "model").rglob("*.pkl"))
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    pd.testing.assert_frame_equal(found, predict(frame, tmp_path / "run"))
    SetRegressor(**QUICK | {"epochs": 1}).fit(X, Y).save(tmp_path / "arrays")
    with pytest.raises(InputError, match="trained on a table"):
        save_model(tmp_path / "arrays", tmp_path / "none")
    assert not (tmp_path / "none").exists()
