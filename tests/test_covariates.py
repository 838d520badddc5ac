"""Covariates: what is known of a set as a whole, from the table to the explanation."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from capnets import Columns, SetRegressor, Sets
from capnets.errors import InputError
from capnets.estimators.runs import load_estimator
from capnets.evaluate import added_values, baselines, predict
from capnets.explain.added import explain_added
from capnets.export import Engine, Stream, export
from capnets.ingest import Schema, read_table
from capnets.models import build
from capnets.models.ensemble import Ensemble
from capnets.pages.interactive import interactive_page
from capnets.runs import Run
from capnets.serve.limits import Limits
from capnets.serve.network import Network
from capnets.sets.batch import Batches
from capnets.sets.fingerprint import fingerprint
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

ADDITIVE = ["c-deepset", "c-gru", "c-lstm", "c-rnn", "c-pairs", "c-pool", "c-potential"]


def drawn(n=6, features=3, covariates=2, seed=0, least=1):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(k, features)) for k in rng.integers(least, 5, n)]
    return Sets.from_arrays(
        arrays, y=rng.normal(size=n), covariates=rng.normal(size=(n, covariates))
    )


def network(name, **settings):
    """Return a network whose baseline depends on covariates, as after training."""
    model = build(name, in_features=3, covariates=2, hidden=4, layers=2, seed=0, **settings)
    with torch.no_grad():
        for part in model.modules():
            if hasattr(part, "partly_hidden"):
                part.decoder[-1].weight.normal_(generator=torch.Generator().manual_seed(1))
    return model.double().eval()


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n)
    owner = np.repeat(np.arange(n), sizes)
    price = rng.normal(size=len(owner))
    age = rng.uniform(2, 8, n)
    frame = pd.DataFrame(
        {
            "customer": owner,
            "price": price,
            "age": age[owner],
            "region": np.array(["n", "s"])[owner % 2],
        }
    )
    frame["worth"] = np.bincount(owner, price)[owner] + 3 * frame["age"]
    return frame


COLUMNS = Columns(set="customer", target="worth", covariates=("age", "region"))


# Sets ---------------------------------------------------------------------------------------------


def test_covariates_follow_their_sets(tmp_path):
    sets = drawn()
    assert np.array_equal(sets[2:4].covariates, sets.covariates[2:4])
    assert np.array_equal(sets.subset([3, 0]).covariates, sets.covariates[[3, 0]])
    both = Sets.concatenate([sets[:2], sets[2:]])
    assert np.array_equal(both.covariates, sets.covariates)
    sets.save(tmp_path / "sets")
    assert np.array_equal(Sets.load(tmp_path / "sets").covariates, sets.covariates)
    assert json.loads((tmp_path / "sets" / "sets.json").read_text())["format"] == 4


def test_sets_without_covariates_keep_their_format(tmp_path):
    Sets.from_arrays([np.ones((2, 3))]).save(tmp_path)
    about = json.loads((tmp_path / "sets.json").read_text())
    assert about["format"] == 3
    assert "covariate_names" not in about
    assert Sets.load(tmp_path).covariates is None


def test_fingerprint_depends_on_covariates():
    sets = drawn()
    assert fingerprint(sets) != fingerprint(replace(sets, covariates=sets.covariates + 1))
    assert fingerprint(sets) != fingerprint(replace(sets, covariates=None))


def test_batches_repeat_covariates_on_padding_and_empty_sets():
    known = np.array([[7.0], [8.0]])
    sets = Sets.from_arrays([np.ones((2, 1)), np.ones((0, 1))], covariates=known)
    x = Batches(sets).take(np.array([0, 1])).x
    assert x[..., 1].tolist() == [[7, 7], [8, 8]]
    batch = Batches(sets).take(np.array([1]))
    assert batch.x[..., 1].tolist() == [[8]]
    assert batch.mask.tolist() == [[False]]


@pytest.mark.parametrize(
    ("given", "words"),
    [(np.ones(2), "sets x covariates"), (np.ones((3, 1)), "3 rows"), ([["a"], ["b"]], "numbers")],
)
def test_other_shapes_and_kinds_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        Sets.from_arrays([np.ones((1, 2))] * 2, covariates=given)


def test_a_missing_covariate_is_named():
    sets = Sets.from_arrays(
        [np.ones((1, 2))] * 2, covariates=[[1.0], [np.nan]], covariate_names=["age"]
    )
    with pytest.raises(InputError, match="covariate 'age' of set 1"):
        sets.check_finite()


# Networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADDITIVE)
@torch.no_grad()
def test_identities_hold_with_covariates(name):
    model, sets = network(name), drawn(least=1)
    batch = Batches(sets).take(np.arange(len(sets)))
    x, mask = batch.x.double(), batch.mask
    values, base = model.added_values(x, mask), model.baselines(x)
    assert base.std() > 1e-3  # it depends on the covariates
    torch.testing.assert_close(base + values.sum(1), model(x, mask))
    nothing = torch.zeros_like(mask)
    torch.testing.assert_close(model(x, nothing), base)
    full = x[mask.sum(1) >= 2][:, :2]
    torch.testing.assert_close(model.added_values(full[:, :1]), model.added_values(full)[:, :1])
    torch.testing.assert_close(model(full) - model(full[:, :1]), model.added_values(full)[:, 1])


@pytest.mark.parametrize("name", ["gru", "attention", "deepset"])
@torch.no_grad()
def test_values_of_other_networks_sum_to_the_prediction(name):
    model = network(name)
    x = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[..., 3:] = x[:, :1, 3:]
    torch.testing.assert_close(model.baselines(x) + model.added_values(x).sum(1), model(x))


@torch.no_grad()
def test_ensembles_average_baselines():
    model = network("c-gru", members=2)
    x = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model.baselines(x) + model.added_values(x).sum(1), model(x))


def test_untrained_baselines_are_equal():
    x = torch.randn(4, 2, 5, generator=torch.Generator().manual_seed(0))
    model = build("c-deepset", in_features=3, covariates=2, seed=0)
    assert model.baselines(x).unique().tolist() == [0.0]


def test_one_baseline_for_all_sets_is_refused():
    with pytest.raises(InputError, match="covariates"):
        _ = network("c-gru").baseline
    with pytest.raises(InputError, match="padding"):
        network("c-gru")(torch.zeros(2, 0, 5, dtype=torch.float64))


@pytest.mark.parametrize(
    "settings",
    [{"name": "c-trees"}, {"name": "c-gru", "aggregation": "any", "activation": "identity"}],
)
def test_networks_that_cannot_add_a_baseline_refuse(settings):
    with pytest.raises(InputError, match="covariates"):
        build(**settings, covariates=1)


@pytest.mark.parametrize("name", ["c-gru", "c-pairs", "c-pool", "c-potential", "gru", "deepset"])
def test_engines_compute_what_networks_do(name, tmp_path):
    model = network(name).float()
    sets = drawn(n=40)
    card = export(Ensemble([model, network(name).float()]), tmp_path / "graphs", sets=sets)
    assert card.instance["shape"] == [3]
    assert card.graphs["sets"]["inputs"] == ["instances", "covariates", "mask"]
    assert "`covariates`: sets x 2" in (tmp_path / "graphs" / "README.md").read_text()
    for engine in (Engine(model), Engine(tmp_path / "graphs")):
        assert engine.covariates == 2
        near = {"rtol": 1e-4, "atol": 1e-5}
        np.testing.assert_allclose(engine.predict(sets), predict(model, sets), **near)
        values = added_values(model, sets)
        np.testing.assert_allclose(engine.added_values(sets), values, **near)
        with pytest.raises(InputError, match="X has 0 covariates, but this network is expecting 2"):
            engine.predict(replace(sets, covariates=None))
        with pytest.raises(InputError, match="streamed"):
            Stream(engine)


def test_engines_predict_the_baselines_of_empty_sets():
    model = network("c-gru").float()
    some = drawn()
    nothing = replace(some, index=some.index[:0], offsets=np.zeros(7, dtype=np.int64), y=None)
    found = Engine(model).predict(nothing)
    np.testing.assert_allclose(found, baselines(model, some)[:, 0], rtol=1e-5)
    assert found.std() > 1e-3
    both = Sets.concatenate([replace(some, y=None), nothing])
    np.testing.assert_allclose(Engine(model).predict(both)[6:], found, rtol=1e-6)


def test_services_and_interactive_pages_are_refused(tmp_path):
    model = SetRegressor("c-gru", columns=COLUMNS, members=1, epochs=1, random_state=0)
    folder = model.fit(table()).save(tmp_path / "run").folder
    with pytest.raises(InputError, match="interactive pages do not support covariates"):
        interactive_page([Run(folder)])
    with pytest.raises(InputError, match="covariates are not served"):
        Network("run", folder, limits=Limits(), observe=lambda *_: None)


def test_other_covariates_are_refused():
    model, sets = network("c-gru").float(), drawn(covariates=1)
    with pytest.raises(InputError, match="X has 1 covariates"):
        predict(model, sets)
    with pytest.raises(InputError, match="X has 1 covariates"):
        fit(model, sets, recipe=Recipe(epochs=1))


# Tables -------------------------------------------------------------------------------------------


def test_tables_give_covariates_and_schemas_remember_them():
    frame = table()
    data = read_table(frame, COLUMNS)
    assert data.sets.feature_names == ("price",)
    assert data.sets.covariate_names == ("age", "region=n", "region=s")
    first = frame.drop_duplicates("customer")
    np.testing.assert_allclose(data.sets.covariates[:, 0], first["age"], rtol=1e-6)
    schema = Schema.from_dict(json.loads(json.dumps(data.schema.to_dict())))
    again = read_table(frame.drop(columns="worth"), schema, labels=False)
    assert np.array_equal(again.sets.covariates, data.sets.covariates)


def test_missing_covariates_follow_the_rule():
    frame = table()
    frame.loc[frame["customer"] == 1, "age"] = None
    with pytest.raises(InputError, match="column 'age': no value"):
        read_table(frame, COLUMNS)
    data = read_table(frame, replace(COLUMNS, missing="mean"))
    summary = str(data.summary())
    assert "covariates: 2 columns (age, region)" in summary
    assert "missing values: age 1" in summary
    others = np.delete(data.sets.covariates[:, 0], 1)
    assert data.sets.covariates[1, 0] == pytest.approx(others.mean(), rel=1e-6)


def test_hashed_covariates_allow_unseen_values():
    frame = table()
    frame["zip"] = [f"{k:05d}x" for k in frame["customer"]]
    columns = Columns(
        set="customer", target="worth", covariates="zip", hashed="zip", features="price", buckets=8
    )
    data = read_table(frame, columns)
    assert data.sets.covariates.shape[1] == 8
    assert (data.sets.covariates.sum(1) == 1).all()
    new = read_table(frame.assign(zip="unseen"), data.schema)
    assert (new.sets.covariates.sum(1) == 1).all()


def test_a_covariate_that_varies_names_set_column_and_values():
    frame = table()
    k = int(np.flatnonzero(frame["customer"].duplicated())[0])
    frame.loc[k, "region"] = "west"
    with pytest.raises(InputError, match=r"'region': set \d+ has '.' in row .* 'west' in row"):
        read_table(frame, COLUMNS)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"covariates": "agee"}, "did you mean 'age'"),
        ({"covariates": "customer"}, "two meanings"),
        ({"covariates": "worth"}, "two meanings"),
        ({"covariates": "age", "features": ("price", "age")}, "as a feature and as a covariate"),
    ],
)
def test_wrong_covariates_are_refused(columns, words):
    with pytest.raises(InputError, match=words):
        read_table(table(), Columns(set="customer", target="worth", categories="region", **columns))


def test_dates_and_long_text_are_refused():
    frame = table()
    frame["born"] = pd.Timestamp("2000-01-01")
    with pytest.raises(InputError, match="'born' holds dates"):
        read_table(frame, Columns(set="customer", target="worth", covariates="born"))
    frame["name"] = [f"name {k}" for k in frame["customer"]]
    with pytest.raises(InputError, match="--hashed name"):
        read_table(
            frame.drop(columns="born"), Columns(set="customer", target="worth", covariates="name")
        )


# Learning -----------------------------------------------------------------------------------------


def test_the_baseline_learns_the_age_and_the_values_the_items():
    """Label = items + 3 age + noise of deviation 1.

    With 600 sets, least squares knows the slope up to 1 / (1.73 * sqrt(600)) = .024; six times
    that is .15. Values have deviation 2.1; an R² of .9 allows an error of two thirds of the noise.
    """
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 600)
    owner = np.repeat(np.arange(600), sizes)
    items = rng.normal(size=(len(owner), 3))
    worth, age = 2 * items[:, 0] + np.abs(items[:, 1]), rng.uniform(2, 8, 600)
    y = np.bincount(owner, worth) + 3 * age + rng.normal(size=600)
    arrays = np.split(items, np.cumsum(sizes)[:-1])
    sets = Sets.from_arrays(arrays, y=y, covariates=age[:, None], covariate_names=["age"])
    model = SetRegressor("c-pairs", members=1, random_state=0).fit(sets)
    found, values = baselines(model.model_, sets)[:, 0], added_values(model.model_, sets)
    slope, _ = np.polyfit(age, found, 1)
    assert slope == pytest.approx(3, abs=0.15)
    assert np.corrcoef(age, found)[0, 1] > 0.99
    assert 1 - np.mean((values - worth) ** 2) / np.var(worth) > 0.9


def test_estimators_predict_explain_save_and_load(tmp_path):
    frame = table()
    model = SetRegressor("c-gru", columns=COLUMNS, members=1, epochs=3, random_state=0).fit(frame)
    prediction, found = model.predict(frame), model.explain(frame)
    np.testing.assert_allclose(found.gaps, 0, atol=1e-4)
    assert len(np.unique(found.baselines)) > 1
    assert not hasattr(model, "baseline_")  # one per set
    assert found.covariates[0].startswith("age ")
    assert "baseline" in found.to_frame()
    assert "the baseline for this set (age " in found.to_html()
    np.testing.assert_allclose(model.explain(frame, method="shapley").gaps, 0, atol=1e-4)
    model.save(tmp_path / "run")
    np.testing.assert_allclose(load_estimator(tmp_path / "run").predict(frame), prediction)
    with pytest.raises(InputError, match="age"):
        model.predict(frame.drop(columns="age"))
    with pytest.raises(InputError, match="number"):
        model.predict(frame.assign(age="old"))
    with pytest.raises(InputError, match="unseen category"):
        model.predict(frame.assign(region="west"))


def test_empty_coalitions_are_worth_the_baseline_of_their_set():
    model, sets = network("c-deepset").float(), drawn()
    found = explain_added(model, sets)
    np.testing.assert_allclose(found.gaps, 0, atol=1e-5)
    np.testing.assert_allclose(found.baselines, baselines(model, sets)[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found.predictions, predict(model, sets), rtol=1e-4, atol=1e-5)
