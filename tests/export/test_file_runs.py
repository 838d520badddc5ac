"""Every network of the registry, trained on a table as an ensemble, saved, exported and run."""

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError, SizeWarning
from capnets.estimators import SetClassifier, SetRegressor
from capnets.evaluate import added_values, predict
from capnets.explain import explain
from capnets.export import Engine, export
from capnets.ingest import Columns, read_table
from capnets.models import MODELS
from exported import EXPORTED


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"s": np.repeat(np.arange(12), 3), "a": generator.normal(5, 3, 36)})
    frame["kind"] = generator.choice(["x", "y"], 36)
    frame["y"] = frame.groupby("s")["a"].transform("sum")
    frame["label"] = np.array(["low", "middle", "high"])[frame["s"] % 3]
    return frame


@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("target", ["y", "label"])
def test_graphs_of_a_run_on_a_table(tmp_path, frame, name, target):
    columns = Columns(set="s", target=target, features=("a", "kind"), categories="kind")
    kind = SetRegressor if target == "y" else SetClassifier
    estimator = kind(name, columns=columns, members=2, epochs=1, hidden=4, random_state=0)
    run = estimator.fit(frame).save(tmp_path / "run")
    card = export(run.folder, tmp_path / "onnx")
    assert card.instance["names"] == ["a", "kind=x", "kind=y"]
    engine = Engine(tmp_path / "onnx")
    new = pd.concat([frame.assign(s=0), frame])  # a set of 36 and more: larger than any before
    sets = read_table(new, estimator.schema_, labels=False).sets
    wanted = predict(estimator.model_, sets)
    scale = np.abs(wanted).max()
    values = added_values(estimator.model_, sets)
    with pytest.warns(SizeWarning, match="1 of 12 sets"):
        np.testing.assert_allclose(engine.predict(sets), wanted, atol=1e-4 * scale)
    with pytest.warns(SizeWarning, match="1 of 12 sets"):
        np.testing.assert_allclose(engine.added_values(sets), values, atol=1e-4 * scale)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in EXPORTED])
def test_networks_without_a_graph_train_and_explain(tmp_path, frame, name):
    """They save, predict and explain like others; export is refused in one sentence."""
    columns = Columns(set="s", target="y", features=("a", "kind"), categories="kind")
    settings = {"columns": columns, "members": 1, "epochs": 1, "hidden": 4, "random_state": 0}
    estimator = SetRegressor(name, **settings).fit(frame)
    run = estimator.save(tmp_path / "run")
    sets = read_table(frame, estimator.schema_, labels=False).sets
    found = explain(run.model, sets)
    totals = np.add.reduceat(found.values, sets.offsets[:-1])
    np.testing.assert_allclose(totals, found.predictions, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match=r"^there is no ONNX graph for a network of type \w+"):
        export(run.folder, tmp_path / "onnx")
