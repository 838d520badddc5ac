"""Survival: hazards of sets from censored times."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetSurvival
from capnets.estimators.runs import evaluate_run, load_estimator
from capnets.explain.survival import RiskGroups, kaplan_meier, log_rank
from capnets.ingest import Columns
from capnets.learn import make_plan
from capnets.learn.folds import make_folds
from capnets.models import AdditiveModel
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe
from capnets.training.survival import concordance, cox_losses
from survival_data import EFFECTS, ragged_sets, rows

LIFELINES = json.loads(Path(__file__).parents[1].joinpath("training/lifelines.json").read_text())

QUICK = {
    "members": 1,
    "orders": 1,
    "epochs": 40,
    "hidden": 8,
    "network": {"layers": 1},
    "random_state": 0,
}
#: Training to the end of the descent: all sets in every batch.
FULL = QUICK | {"recipe": {"batch_size": 200, "learning_rate": 0.02}, "epochs": 120}


def table(X, y):
    parts = [
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(patient=f"p{k}", months=t, died=e)
        for k, (x, (t, e)) in enumerate(zip(X, y, strict=True))
    ]
    return pd.concat(parts).sample(frac=1, random_state=0)


def fitted_linear(X, y, epochs=300):
    """Return weights and bias of an additive network without hidden layers."""
    recipe = Recipe(epochs=epochs, batch_size=len(X), learning_rate=0.05, weight_decay=0.0)
    model = LinearHazard()
    fit(model, Sets.from_arrays(X, y), recipe=recipe, loss="cox")
    return np.append(*(p.detach().numpy() for p in (model.decoder.weight, model.decoder.bias)))


class LinearHazard(AdditiveModel):
    """A set model without hidden layers: Cox's regression on sums of features and on size."""

    def __init__(self):
        super().__init__(in_features=3, outputs=1)
        self.decoder = torch.nn.Linear(3, 1)

    def values(self, x):
        return self.decoder(x)


def test_a_linear_model_has_the_coefficients_of_lifelines():
    """On sets of one instance, and on sets of several, whose features are pooled by sums."""
    x, time, event = rows(200)
    found = fitted_linear(list(x[:, None]), np.stack([time, event], axis=1))
    np.testing.assert_allclose(found[:3], LIFELINES["rows"]["coefficients"], atol=1e-3)
    X, y, _ = ragged_sets()
    sums = fitted_linear(X, y)
    np.testing.assert_allclose(sums, LIFELINES["sums"]["coefficients"], atol=1e-3)
    # The estimates are asymptotically normal: five standard errors from the truth are chance
    # in one draw of a million.
    errors = np.array(LIFELINES["sums"]["standard_errors"])
    assert (abs(sums - [*EFFECTS, 0.0]) < 5 * errors).all()


def total_loss(hazard, y):
    return float(cox_losses(*map(torch.as_tensor, (np.float64(hazard), *y.T))).sum())


def test_known_hazards():
    """The network fits its training sets at least as well as the true hazards do.

    It contains them (almost: its cell bends), so its best fit cannot be worse. On new sets it may
    lose to the truth, but orders them far better than chance, whose concordance has the variance
    of Kendall's rank correlation.
    """
    X, y, truth = ragged_sets()
    model = SetSurvival(**FULL).fit(X, y)
    assert total_loss(model.predict(X), y) < total_loss(truth, y)
    assert total_loss(model.predict(X), y) < -LIFELINES["sums"]["log_likelihood"]
    new, times, hazard = ragged_sets(200, seed=1)
    events = int(times[:, 1].sum())
    by_chance = np.sqrt(2 * (2 * events + 5) / (9 * events * (events - 1))) / 2
    best = concordance(torch.tensor(hazard), *torch.tensor(times).T)
    assert 0.5 + 6 * by_chance < model.score(new, times) < best + 6 * by_chance
    values = model.added_values(new)
    owner = np.repeat(np.arange(len(new)), [len(x) for x in new])
    np.testing.assert_allclose(np.bincount(owner, values), model.predict(new), atol=1e-4)


def test_a_network_of_single_instances_fits_at_least_as_well_as_a_cox_regression():
    x, time, event = rows(200)
    X, y = list(x[:, None]), np.stack([time, event], axis=1)
    model = SetSurvival(**FULL).fit(X, y)
    assert total_loss(model.predict(X), y) < -LIFELINES["rows"]["log_likelihood"]


def test_labels_in_any_form():
    X, y, _ = ragged_sets(60)
    settings = QUICK | {"epochs": 3}
    expected = SetSurvival(**settings).fit(X, y)
    frame = pd.DataFrame({"event": y[:, 1] > 0, "time": y[:, 0]})
    fields = np.array([(e, t) for t, e in y], dtype=[("died", bool), ("months", float)])
    for given in (frame, fields, y.tolist()):
        found = SetSurvival(**settings).fit(X, given)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        assert found.score(X, given) == expected.score(X, y)


@pytest.mark.parametrize("died", [float, bool])
def test_tables_and_saved_runs(tmp_path, died):
    X, y, _ = ragged_sets(60)
    frame = table(X, y).astype({"died": died})
    columns = Columns(set="patient", target=("months", "died"))
    model = SetSurvival(columns=columns, **QUICK | {"epochs": 3}).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.output_names() == ["log-hazard"]
    model.save(tmp_path / "run")
    again = load_estimator(tmp_path / "run")
    assert isinstance(again, SetSurvival)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    frame.to_parquet(tmp_path / "new.parquet")
    found = evaluate_run(tmp_path / "run", tmp_path / "new.parquet", include_training=True)
    assert found["concordance"] == pytest.approx(model.score(frame))


def test_events_in_equal_shares():
    X, y, _ = ragged_sets(60)
    model = SetSurvival(early_stopping=0.2, **QUICK | {"epochs": 2})
    assert all(line["valid"] is not None for line in model.fit(X, y).history_)
    problem = model.problem(X, y)
    shares = [y[test, 1].mean() for _, test in make_folds(problem, seed=0)]
    assert max(shares) - min(shares) < 0.1
    assert make_plan(problem, replace(model.options(), epochs=1)).recipe.batch_size == 128


def changed(y, column, value):
    y = y.copy()
    y[3, column] = value
    return y


def test_faults():
    X, y, _ = ragged_sets(30)
    faults = [
        (changed(y, 0, -1), "the time of set 3 is -1"),
        (changed(y, 1, 2), r"the event of set 3 is 2; expected 1 \(event\) or 0"),
        (changed(y, 0, np.nan), "the label of set 3 is nan"),
        (y * [1, 0], "no set has an event"),
        (y[:, 0], "expected a time and an event"),
        (pd.DataFrame({"time": y[:, 0]}), "needs the columns 'time' and 'event', but has 'time'"),
        (pd.DataFrame({"time": y[:, 0], "event": "dead"}), "'event' of y is not numeric.*'dead'"),
        (
            pd.DataFrame({"time": pd.to_timedelta(y[:, 0], unit="D"), "event": y[:, 1]}),
            "'time' of y is not numeric .*timedelta",
        ),
        (np.array([(1.0, 2.0)] * 30, dtype=[("a", float), ("b", float)]), "one Boolean field"),
    ]
    for labels, message in faults:
        with pytest.raises(InputError, match=message):
            SetSurvival(**QUICK).fit(X, labels)
    frame = table(X, y)
    for target, message in ((("months", "dead"), "dead"), ("months", "two target columns")):
        with pytest.raises(InputError, match=message):
            SetSurvival(columns=Columns(set="patient", target=target), **QUICK).fit(frame)
    with pytest.raises(InputError, match="teacher: SetSurvival learns from times"):
        SetSurvival(**QUICK).fit(X, y, teacher="pooled")
    fitted = SetSurvival(**QUICK | {"epochs": 1}).fit(X, y)
    with pytest.raises(InputError, match="no two sets are comparable"):
        fitted.score(X, y * [1, 0])


def written(folder, name="sets.parquet", count=80, **changes):
    X, y, _ = ragged_sets(count)
    file = folder / name
    table(X, y).assign(**changes).to_parquet(file)
    return file


NAMED = ("--set-column", "patient", "--time", "months", "--event", "died")
SMALL = ("-m", "c-gru", "--members", 1, "--epochs", 2, "--hidden", 4)


def test_command_line(say, tmp_path):
    file, run, page = written(tmp_path), tmp_path / "run", tmp_path / "page.html"
    answer = say("train", file, *NAMED, *SMALL, "-o", run)
    assert "Predicting log-hazards: " in answer.text
    assert "concordance" in answer.text
    found = say("evaluate", run, file, "--html", page, "--json").json
    assert found["sets"] == 16  # a fifth was held out, the rest was trained on
    assert 0 <= found["concordance"] <= 1
    assert "Kaplan-Meier curves" in page.read_text()
    shown = say("explain", run, file, "--json").json[0]
    assert "label" not in shown or shown["label"] is None  # a time is no log-hazard
    assert say("predict", run, file, "-o", tmp_path / "p.parquet").code == 0
    values = pd.read_parquet(tmp_path / "p.parquet")
    sums = values.groupby("set").added_value.sum()
    np.testing.assert_allclose(sums, values.groupby("set").prediction.first(), atol=1e-4)


def test_faults_of_the_command_line(tmp_path):
    faults = [
        (written(tmp_path, "a.parquet", months=-1.0), NAMED, "times must not be negative"),
        (written(tmp_path, "b.parquet", died=0.0), NAMED, "no set has an event"),
        (written(tmp_path, "c.parquet"), (*NAMED, "--target", "a"), "belong together and replace"),
        (tmp_path / "c.parquet", NAMED[:4], "--time and --event belong together"),
        (tmp_path / "c.parquet", (*NAMED[:5], "dead"), "unknown column 'dead'"),
    ]
    for file, named, message in faults:
        asked = map(str, ("train", file, *named, *SMALL, "-o", tmp_path / "run"))
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(app, list(asked), catch_exceptions=False)
        assert not (tmp_path / "run").exists()


def test_curves_equal_those_of_lifelines():
    x, time, event = rows(200)
    times, share = kaplan_meier(time, event)
    expected = LIFELINES["curve"]
    np.testing.assert_array_equal(times, expected["times"])
    np.testing.assert_allclose(share, expected["survival"], rtol=1e-12)
    statistic, p = log_rank(time, event, np.digitize(x[:, 0], [-0.5, 0.5]))
    assert statistic == pytest.approx(LIFELINES["log_rank"]["statistic"])
    assert p == pytest.approx(LIFELINES["log_rank"]["p"])


def test_risk_groups():
    _, time, event = rows(90)
    hazard = np.arange(90.0)
    found = RiskGroups.divide(hazard, time, event)
    assert np.bincount(found.group).tolist() == [30, 30, 30]
    assert hazard[found.group == 2].min() > hazard[found.group == 1].max()
    record = found.record()
    assert sum(row["events"] for row in record["groups"]) == event.sum()
    lines = found.figure().axes[0].get_lines()
    assert [line.get_ydata()[0] for line in lines[::2]] == [1.0] * 3
    assert "not reached" in RiskGroups.divide(hazard, time, event * (hazard > 60)).to_html()
    for groups, message in ((1, "groups must be from 2"), (91, "groups must be from 2")):
        with pytest.raises(InputError, match=message):
            RiskGroups.divide(hazard, time, event, groups=groups)
    with pytest.raises(InputError, match="too many predictions are equal"):
        RiskGroups.divide(np.zeros(90), time, event)
