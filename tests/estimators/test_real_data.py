"""Estimators on real sets."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from capnets.estimators import SetClassifier

FOLDER = Path(__file__).parents[2] / "benchmarks" / "mil"


@pytest.fixture
def bags(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield import_module("bags")
    sys.modules.pop("bags")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sets", "instances", "features"),
    [
        ("musk1", 92, 476, 166),
        ("musk2", 102, 6598, 166),
        ("elephant", 200, 1391, 230),
        ("mutagenesis", 188, 4893, 44),
        ("thrombin", 3181, 114_097, 52),
    ],
)
def test_multiple_instance_data(bags, name, sets, instances, features):
    data = bags.load_mil(name)
    assert (len(data), *data.instances.shape) == (sets, instances, features)
    assert (data.sizes > 0).all()
    data.check_finite()
    assert (set(np.unique(data.y)) == {0, 1}) == (bags.MIL[name].classes is not None)


@pytest.mark.data
def test_reviews(bags):
    assert bags.load_wmil("ted_comments").instances.shape == (3814, 957)
    assert bags.load_wmil("audible").y.shape == (1200, 3)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::capnets.errors.SizeWarning")
def test_grid_search_over_networks_and_sizes_with_two_processes(bags):
    sets = bags.load_mil("musk1")
    X, y = [sets[k] for k in range(len(sets))], np.asarray(sets.y).astype(int)
    search = GridSearchCV(
        SetClassifier("c-gru", members=1, orders=1, epochs=10, random_state=0),
        {"model": ["c-gru", "c-lstm", "deepset"], "hidden": [8, 16]},
        cv=3, n_jobs=2, scoring="roc_auc", error_score="raise",
    )  # fmt: skip
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    assert search.best_score_ > 0.7
