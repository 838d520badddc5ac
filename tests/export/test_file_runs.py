"""Every network of the registry, trained on a table as an ensemble, saved, exported and run."""

import numpy as np
import pandas as pd
import pytest

from capnets.estimators import SetClassifier, SetRegressor
from capnets.evaluate import added_values, predict
from capnets.export import Engine, export
from capnets.ingest import Columns, read_table
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
    np.testing.assert_allclose(engine.predict(sets), wanted, atol=1e-4 * scale)
    values = added_values(estimator.model_, sets)
    np.testing.assert_allclose(engine.added_values(sets), values, atol=1e-4 * scale)
