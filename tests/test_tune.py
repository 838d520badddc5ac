import json

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.sets import Sets
from capnets.tables import Columns
from capnets.tune import Space, make_folds, tune

SPACE = Space(models=("deepset", "c-rnn"), hidden=(4,), layers=(1,), epochs=(2, 4))


def sets_of(count=40, seed=0):
    generator = np.random.default_rng(seed)
    X = [generator.normal(size=(generator.integers(1, 4), 3)) for _ in range(count)]
    return Sets.from_arrays(X, y=[x[:, 0].sum() for x in X])


def test_goes_on_until_there_are_enough_trials_and_trains_the_best(tmp_path):
    counted = []
    estimator = SetRegressor(members=1, orders=1, random_state=0)
    run = tune(
        tmp_path / "t", sets_of(), estimator, trials=3, space=SPACE,
        progress=lambda done, total: counted.append((done, total)),
    )  # fmt: skip
    rows = [json.loads(x) for x in (tmp_path / "t" / "trials.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert [r["loss"] for r in rows] == sorted(r["loss"] for r in rows)
    assert counted[-1] == (3, 3)
    assert run.config.model.name == rows[0]["model"]
    assert run.config.recipe.epochs == rows[0]["epochs"]
    assert "test" in run.metrics
    page = (tmp_path / "t" / "trials.html").read_text()
    assert page.count("<tr>") == 4
    with pytest.raises(InputError, match="finished run"):
        tune(tmp_path / "t", sets_of(), estimator, trials=4, space=SPACE)


def test_a_study_that_was_stopped_goes_on(tmp_path):
    class StoppedError(Exception):
        pass

    def stop(done, total):
        if done == 2:
            raise StoppedError

    estimator = SetRegressor(members=1, orders=1, random_state=0)
    settings = {"trials": 3, "space": SPACE}
    with pytest.raises(StoppedError):
        tune(tmp_path / "t", sets_of(), estimator, progress=stop, **settings)
    seen = []
    tune(tmp_path / "t", sets_of(), estimator, progress=lambda d, t: seen.append(d), **settings)
    assert seen == [2, 3]


@pytest.mark.slow
def test_classes_of_a_table_with_two_workers(tmp_path):
    sets = sets_of(60)
    frame = pd.concat(
        pd.DataFrame(sets[k], columns=["a", "b", "c"]).assign(
            s=k, label="up" if sets.y[k] > 0 else "down"
        )
        for k in range(60)
    )
    estimator = SetClassifier(columns=Columns(set="s", target="label"), members=1, random_state=0)
    run = tune(tmp_path / "t", frame, estimator, trials=4, space=SPACE, workers=2)
    assert len((tmp_path / "t" / "trials.jsonl").read_text().splitlines()) >= 4
    again = load_estimator(run.folder)
    assert set(again.predict(frame.drop(columns="label"))) <= {"up", "down"}


def test_fewer_sets_than_folds(tmp_path):
    with pytest.raises(InputError, match="fewer than the 3 folds"):
        tune(tmp_path / "t", sets_of(3), SetRegressor(random_state=0), trials=1)
    with pytest.raises(InputError, match="at least 1 trial"):
        tune(tmp_path / "t", sets_of(30), SetRegressor(random_state=0), trials=0)


def frame_of(count=24):
    sets = sets_of(count)
    return pd.concat(
        pd.DataFrame(sets[k], columns=["a", "b", "c"]).assign(
            s=k, y=sets.y[k], g=k // 4, w=1.0 + k % 3
        )
        for k in range(count)
    )


def test_folds_keep_groups_whole_and_weights_count(tmp_path, monkeypatch):
    seen = []

    def note(sets, kind, settings, *, seed, parts):
        seen.append((np.asarray(sets.pool)[sets.rows(0)], sets.weights, parts))
        return float(settings["hidden"])

    monkeypatch.setattr("capnets.tune.cross_validate", note)
    frame = frame_of()
    columns = Columns(set="s", target="y", group="g", weight="w")
    estimator = SetRegressor(columns=columns, members=1, orders=1, random_state=0)
    tune(tmp_path / "t", frame, estimator, trials=1, space=SPACE)
    _, weights, parts = seen[0]
    sets = Sets.load(tmp_path / "t" / "sets")
    groups = sets.ids // 4
    np.testing.assert_allclose(weights / weights.mean(), _expected(sets.ids % 3 + 1.0), rtol=1e-5)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(len(sets)))
    for train, test in parts:
        assert not set(groups[train]) & set(groups[test])


def _expected(weights):
    return weights / weights.mean()


def test_fewer_groups_than_folds(tmp_path):
    columns = Columns(set="s", target="y", group="g")
    estimator = SetRegressor(columns=columns, random_state=0)
    with pytest.raises(InputError, match="groups to train on, fewer than the 3 folds"):
        tune(tmp_path / "t", frame_of(12), estimator, trials=1)
    kind = {"classes": 2, "multilabel": False}
    sets = Sets.from_arrays([np.ones((1, 1))] * 8, y=[0] * 4 + [1] * 4)
    groups = np.array([0, 1, 2, 3, 4, 4, 4, 4])
    with pytest.raises(InputError, match="so few groups"):
        make_folds(sets, kind, groups=groups, seed=0)
