"""Survival: hazards of sets from censored times."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from capnets.errors import InputError
from capnets.estimators import SetSurvival
from capnets.estimators.runs import evaluate_run, load_estimator
from capnets.ingest import Columns
from capnets.learn import make_plan
from capnets.learn.folds import make_folds
from capnets.models import AdditiveModel
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe
from capnets.training.survival import concordance
from ragged import ragged

QUICK = {"members": 1, "orders": 1, "epochs": 40, "hidden": 8, "layers": 1, "random_state": 0}


def drawn(count=200, seed=0):
    """Return sets, (time, event) and the true log-hazards, sums over instances."""
    draw = np.random.default_rng(seed)
    X = ragged(count, seed=seed)
    hazard = np.array([(0.9 * x[:, 0] - 0.6 * x[:, 1]).sum() for x in X])
    time = draw.exponential(np.exp(-hazard))
    censored = draw.exponential(np.exp(1.0), size=count)
    return X, np.stack([np.minimum(time, censored), time <= censored], axis=1), hazard


def table(X, y):
    parts = [
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(patient=f"p{k}", months=t, died=e)
        for k, (x, (t, e)) in enumerate(zip(X, y, strict=True))
    ]
    return pd.concat(parts).sample(frac=1, random_state=0)


def test_known_hazards():
    """Concordance on new sets comes near that of the true hazards; values are added log-hazards."""
    X, y, _ = drawn()
    model = SetSurvival(**QUICK).fit(X, y)
    new, times, hazard = drawn(200, seed=1)
    best = concordance(torch.tensor(hazard), *torch.tensor(times).T)
    assert model.score(new, times) > best - 0.05
    found = model.predict(new)
    assert np.corrcoef(found, hazard)[0, 1] > 0.9
    values = model.added_values(new)
    owner = np.repeat(np.arange(len(new)), [len(x) for x in new])
    np.testing.assert_allclose(np.bincount(owner, values), found, atol=1e-4)
    alone = np.concatenate([0.9 * x[:, 0] - 0.6 * x[:, 1] for x in new])
    assert np.corrcoef(values, alone)[0, 1] > 0.85


#: Coefficients of lifelines 0.30.3 on `single()`; see tests/training/test_survival.py.
LIFELINES = np.array([0.8957658937423341, -0.6110228710372984, -0.039964020107469446])


def single():
    """Return 200 instances with tied times, some of them censored."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 3))
    time = np.ceil(draw.exponential(np.exp(-x @ [0.8, -0.5, 0.0])) * 10)
    event = (draw.random(200) < 0.7).astype(float)
    return x, np.stack([time, event], axis=1)


class LinearHazard(AdditiveModel):
    """A set model without hidden layers: on sets of one instance, Cox's regression."""

    def __init__(self):
        super().__init__(in_features=3, outputs=1)
        self.decoder = torch.nn.Linear(3, 1)

    def values(self, x):
        return self.decoder(x)


def test_a_linear_model_of_single_instances_has_the_coefficients_of_lifelines():
    x, y = single()
    sets = Sets.from_arrays(list(x[:, None]), y)
    recipe = Recipe(epochs=300, batch_size=200, learning_rate=0.05, weight_decay=0.0)
    model = LinearHazard()
    fit(model, sets, recipe=recipe, loss="cox")
    np.testing.assert_allclose(model.decoder.weight[0].detach(), LIFELINES, atol=1e-3)


def test_a_network_of_single_instances_has_about_the_slopes_of_a_cox_regression():
    x, y = single()
    settings = QUICK | {"recipe": {"batch_size": 200, "learning_rate": 0.02}, "epochs": 120}
    model = SetSurvival(**settings).fit(list(x[:, None]), y)
    hazard = model.predict(list(x[:, None]))
    slopes = np.linalg.lstsq(np.column_stack([x, np.ones(200)]), hazard, rcond=None)[0][:3]
    np.testing.assert_allclose(slopes, LIFELINES, atol=0.25)
    assert np.corrcoef(hazard, x @ LIFELINES)[0, 1] > 0.93
    assert model.score(list(x[:, None]), y) > 0.7498861393654167 - 0.01


def test_labels_in_any_form():
    X, y, _ = drawn(60)
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
    X, y, _ = drawn(60)
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
    X, y, _ = drawn(60)
    model = SetSurvival(early_stopping=True, validation_fraction=0.2, **QUICK | {"epochs": 2})
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
    X, y, _ = drawn(30)
    faults = [
        (changed(y, 0, -1), "the time of set 3 is -1"),
        (changed(y, 1, 2), r"the event of set 3 is 2; expected 1 \(event\) or 0"),
        (changed(y, 0, np.nan), "the label of set 3 is nan"),
        (y * [1, 0], "no set has an event"),
        (y[:, 0], "expected a time and an event"),
        (pd.DataFrame({"time": y[:, 0]}), "needs the columns 'time' and 'event', but has 'time'"),
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
