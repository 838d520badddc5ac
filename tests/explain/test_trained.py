"""Explanations of networks trained from set labels alone, where the answers are known.

Sets of one to ten of scikit-learn's digits; the thresholds are those that users may rely on, the
figures of longer trainings are in results/explain.
"""

import numpy as np
import pytest

from capnets import metrics
from capnets.explain import interactions, leave_one_out, shapley_values
from capnets.models import build
from capnets.tasks import make, parse_task
from capnets.tasks.functions import PAIRS
from capnets.training.fit import fit
from capnets.training.recipe import recipe

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained():
    """Task name to (network, the task's sets, new sets of ten)."""
    kept = {}

    def get(task: str):
        if task not in kept:
            sets = make(
                parse_task(f"{task}:digits", sizes=range(1, 11), sets=20_000, valid_sets=500)
            )
            model = build("c-gru", seed=0)
            fit(
                model,
                sets.train,
                sets.valid,
                recipe=recipe("large", epochs=8, batch_size=100),
                seed=0,
            )
            new = make(parse_task(f"{task}:digits", sets=1, valid_sets=1, test_sets=200, seed=1))
            kept[task] = model, new, new.test
        return kept[task]

    return get


def test_the_pairs_of_the_synergy_task_are_its_strongest_interactions(trained):
    model, task, sets = trained("US+S")
    matrix = interactions(model, sets, samples=4).by_class(task.classes(sets))
    upper = sorted((matrix[a, b], (a, b)) for a in range(10) for b in range(a + 1, 10))
    assert {pair for _, pair in upper[-5:]} == set(PAIRS)


@pytest.mark.parametrize(("name", "sign"), [("US", -1), ("WTri", 1)])
def test_redundancy_and_synergy_have_their_sign_for_every_class_that_repeats(name, sign, trained):
    model, task, sets = trained(name)
    classes = task.classes(sets).reshape(len(sets), 10)
    repeats = (classes[:, :, None] == classes[:, None, :]).sum(2) > 1
    contrast = leave_one_out(model, sets).contrast.reshape(classes.shape)
    for c in range(1, 10):  # zeros are worth nothing, alone or together
        assert sign * contrast[repeats & (classes == c)].mean() > 0, c


def test_shapley_values_are_near_the_closed_forms(trained):
    model, task, sets = trained("US")  # other tasks need longer trainings: see results/explain
    closed = task.spec.set_function.shapley(task.classes(sets), sets.offsets)
    sampled = shapley_values(model, sets, orders=32)
    assert metrics.mae(closed, sampled.values) < 0.5
    part = sets[:30]
    exact, sampled = shapley_values(model, part), shapley_values(model, part, orders=64)
    z = np.abs(sampled.values - exact.values) / np.maximum(sampled.errors, 1e-9)
    assert (z < 3).mean() > 0.97
