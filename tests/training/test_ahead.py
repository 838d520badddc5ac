"""Fixed parts of a network, computed once before training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets import Recipe, fit
from capnets.errors import InputError
from capnets.learn.options import Options
from capnets.learn.plan import make_plan
from capnets.learn.problem import Problem
from capnets.models import ModelSpec
from capnets.nn.projection import COMPONENTS
from capnets.sets import Sets, offsets_of
from capnets.training import setup
from capnets.training.ahead import read_ahead
from capnets.training.callbacks import Callback
from capnets.training.priors import UpperBound

FEATURES = 2 * COMPONENTS + 8
RECIPE = Recipe(epochs=3, batch_size=8)


def make(count: int = 20, *, seed: int = 0, features: int = FEATURES) -> Sets:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, count)
    x = (draw.random((sizes.sum(), features)) < 0.05).astype(np.float32)
    cut = offsets_of(sizes)
    y = np.add.reduceat(x[:, 0] + x[:, 1], cut[:-1]).astype(np.float32)
    return Sets(x, np.arange(len(x)), cut, y)


def network(name: str, *, dropout: float = 0.0, inputs: str = "project"):
    features = FEATURES if inputs == "project" else 6
    activation = "identity" if name.startswith("c-") else "abs"
    spec = ModelSpec(name, features, hidden=8, inputs=inputs, dropout=dropout,
                     activation=activation)  # fmt: skip
    return spec.build(0)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("c-gru", "project"), ("gru", "project"), ("c-pairs", "project"), ("deepset", "project"),
     ("c-pool", "standardize"), ("c-trees", "standardize"), ("c-pool", "none")],
)  # fmt: skip
def test_same_training_as_without(name, inputs, monkeypatch):
    sets = make(features=FEATURES if inputs == "project" else 6)
    found = []
    for ahead in (read_ahead, lambda model, data: None):
        monkeypatch.setattr(setup, "read_ahead", ahead)
        model = network(name, inputs=inputs)
        history = fit(model, sets, sets, recipe=replace(RECIPE, reshuffle=False), seed=1)
        found.append([line["train"] for line in history] + [line["valid"] for line in history])
    np.testing.assert_allclose(*found, rtol=1e-3)
    assert found[0][0] > found[0][2], "it learns"


@pytest.mark.parametrize("name", ["c-gru", "c-pool"])
def test_same_bits_after_a_stop(name, tmp_path):
    sets, file = make(), tmp_path / "checkpoint.safetensors"
    whole, stopped, resumed = (network(name, dropout=0.5) for _ in range(3))
    fit(whole, sets, recipe=RECIPE, seed=1)
    with pytest.raises(KeyboardInterrupt):
        fit(stopped, sets, recipe=RECIPE, seed=1, checkpoint=file, callbacks=[StopAfter(2)])
    fit(resumed, sets, recipe=RECIPE, seed=1, checkpoint=file)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[key]), key


class StopAfter(Callback):
    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_end(self, line):
        if line["epoch"] == self.epoch:
            raise KeyboardInterrupt


def test_empty_sets_predict_the_baseline():
    sets = make()
    sizes = np.concatenate([sets.sizes, [0, 0]])
    y = np.concatenate([sets.y, [0, 0]]).astype(np.float32)
    model = network("c-pool", inputs="project")
    fit(model, Sets(sets.instances, sets.index, offsets_of(sizes), y), recipe=RECIPE)
    assert torch.equal(model(torch.zeros(1, 0, FEATURES))[0], model.baseline)


def test_priors_need_instances():
    model, sets = network("c-gru"), make()
    fit(model, sets, recipe=RECIPE, priors=[UpperBound(1.0)])


class TestPlan:
    """Instances with more features than there are instances are projected."""

    def plan(self, sets: Sets, **options):
        return make_plan(Problem(sets), Options(**options))

    def test_wide(self):
        model = self.plan(make()).model
        assert (model.inputs, model.in_features, model.width) == ("project", FEATURES, 64)

    def test_not_wide(self):
        assert self.plan(make(features=500)).model.inputs == "standardize"
        assert self.plan(make(400)).model.inputs == "standardize", "more instances than features"

    def test_features_are_needed(self):
        assert self.plan(make(), sort=0).model.inputs == "standardize"
        assert self.plan(make(), priors=(UpperBound(1.0),)).model.inputs == "standardize"

    def test_networks_that_pool_features_read_them(self):
        member = self.plan(make(), model="c-trees").model.each()[0]
        assert type(member.build(0).inputs).__name__ == "Standardize"

    def test_covariates_are_refused(self):
        with pytest.raises(InputError, match="covariates need"):
            ModelSpec("c-gru", FEATURES, inputs="project", covariates=2, activation="identity")
