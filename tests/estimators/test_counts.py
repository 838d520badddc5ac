"""Counts per set by a Poisson loss: values add to the logarithm of the expected count."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import PoissonRegressor
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.ingest import Columns
from ragged import QUICK, frame_of, ragged

X = ragged(40)
Y = np.random.default_rng(1).poisson([np.exp(x[:, 0].sum() / 2) for x in X])
FAST = QUICK | {"loss": "poisson", "epochs": 3}


def test_predictions_are_the_exponentials_of_added_values(tmp_path):
    model = SetRegressor(**FAST).fit(X, Y)
    assert model.spec_.baseline == "learned"  # without one, an empty set would count one
    values = np.add.reduceat(model.added_values(X), np.cumsum([0, *map(len, X[:-1])]))
    np.testing.assert_allclose(model.predict(X), np.exp(model.baseline_ + values), rtol=1e-4)
    assert abs(np.log(model.predict(X).mean() / Y.mean())) < 1
    found = model.explain(X)
    assert found.unit == "logarithm"
    assert "(logarithm)" in found.to_html()
    np.testing.assert_allclose(np.exp(found.predictions), model.predict(X), rtol=1e-4)
    model.save(tmp_path / "run")
    loaded = load_estimator(tmp_path / "run")
    assert loaded.loss == "poisson"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, Y) == pytest.approx(model.score(X, Y))


def test_coefficients_of_sets_of_one_are_those_of_a_poisson_regression():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 2))
    y = draw.poisson(np.exp(0.3 + x @ [0.5, -0.8]))
    expected = PoissonRegressor(alpha=0, tol=1e-8).fit(x, y)
    model = SetRegressor(
        "c-linear", members=1, orders=1, loss="poisson", random_state=0,
        epochs=150, recipe={"learning_rate": 0.02, "batch_size": 400, "weight_decay": 0.0},
    ).fit(list(x[:, None]), y)  # fmt: skip
    probes = np.array([[0.0, 0], [1, 0], [0, 1]])
    level, *effects = np.log(model.predict(list(probes[:, None])))
    assert level == pytest.approx(expected.intercept_, abs=0.02)
    np.testing.assert_allclose(np.array(effects) - level, expected.coef_, atol=0.02)


def test_command_line(tmp_path):
    def invoke(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)

    file, run, out = tmp_path / "t.csv", tmp_path / "run", tmp_path / "p.csv"
    frame_of(X, Y).to_csv(file, index=False)
    done = invoke(
        "train", file, "--set-column", "set", "--target", "y", "--loss", "poisson", "-m", "c-gru",
        "--members", 1, "--epochs", 2, "--hidden", 4, "-o", run,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Predicting a count" in done.output
    assert "(logarithm)" in invoke("explain", run, file, "--sets", "0").output
    assert invoke("predict", run, file, "-o", out).exit_code == 0
    rows = pd.read_csv(out)
    sums = rows.groupby("set").added_value.sum() + rows.get("baseline", 0 * rows["row"]).iloc[0]
    np.testing.assert_allclose(np.exp(sums), rows.groupby("set").prediction.first(), rtol=1e-3)


def test_faults():
    frame = frame_of(X, Y - 1)
    with pytest.raises(InputError, match=r"label of set s\d+ is -1; the Poisson loss learns"):
        SetRegressor(columns=Columns(set="set", target="y"), **FAST).fit(frame)
    with pytest.raises(InputError, match="all counts are 0"):
        SetRegressor(**FAST).fit(X, 0 * Y)
    with pytest.raises(InputError, match="name a network, such as c-gru"):
        SetRegressor(loss="poisson").fit(X, Y)
    with pytest.raises(InputError, match="trees grow by squared errors"):
        SetRegressor(**FAST | {"model": "c-trees"}).fit(X, Y)
    with pytest.raises(InputError, match="aggregation 'any'"):
        SetRegressor(aggregation="any", **FAST).fit(X, Y)
    with pytest.raises(InputError, match="teacher: only amounts and classes"):
        SetRegressor(**FAST).fit(X, Y, teacher="pooled")
