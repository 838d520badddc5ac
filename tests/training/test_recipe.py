"""Recipes as records, their schedules, the search for a rate."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.models import build
from capnets.sets.batch import Batches
from capnets.training.fit import fit
from capnets.training.losses import LOSSES
from capnets.training.rate import find_rate
from capnets.training.recipe import RECIPES, Recipe, recipe


class TestRecord:
    @pytest.mark.parametrize("name", RECIPES)
    def test_json(self, name):
        again = Recipe.from_dict(json.loads(json.dumps(RECIPES[name].to_dict())))
        assert again == RECIPES[name]

    def test_the_paper(self):
        """Adam with a constant rate of 0.001 on batches of 1000, and nothing else."""
        paper = RECIPES["paper"]
        assert (paper.batch_size, paper.learning_rate, paper.epochs) == (1000, 1e-3, 500)
        assert (paper.schedule, paper.clip, paper.scale, paper.start) == (
            "constant", None, False, "torch",
        )  # fmt: skip
        assert paper.weight_decay == 0
        assert {paper.rate(step, 500, highest=1e-3) for step in range(500)} == {1e-3}

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"epochs": 0}, "epochs must be above 0, not 0"),
            ({"batch_size": -1}, "batch_size must be above 0"),
            ({"learning_rate": -1.0}, "learning_rate must be above 0"),
            ({"clip": 0.0}, "clip must be above 0"),
            ({"patience": 0}, "patience must be above 0"),
            ({"schedule": "one-cyle"}, "unknown schedule 'one-cyle': did you mean 'one-cycle'"),
            ({"optimizer": "mune"}, "unknown optimizer 'mune': did you mean 'muon'"),
            ({"start": "wied"}, "unknown start 'wied': did you mean 'wide'"),
        ],
    )
    def test_refused(self, settings, message):
        with pytest.raises(InputError, match=message):
            Recipe(**settings)

    def test_unknown_key(self):
        with pytest.raises(InputError, match="unknown Recipe setting 'epoch': did you mean 'epoch"):
            Recipe.from_dict({"epoch": 3})

    def test_unknown_name(self):
        with pytest.raises(InputError, match="unknown recipe 'papre': did you mean 'paper'"):
            recipe("papre")

    def test_changes(self):
        assert recipe("paper", epochs=3, clip=None) == replace(RECIPES["paper"], epochs=3)


class TestOneCycle:
    def test_shape(self):
        how = Recipe(warmup=0.1)
        rates = np.array([how.rate(step, 1000, highest=2.0) for step in range(1000)])
        assert rates.argmax() == 100
        assert rates.max() == pytest.approx(2.0)
        assert (np.diff(rates[:101]) > 0).all()
        assert (np.diff(rates[100:]) < 0).all()
        assert rates[0] == pytest.approx(0.08)
        assert 0 < rates[-1] < 1e-3

    def test_without_warmup(self):
        assert Recipe(warmup=0.0).rate(0, 10, highest=2.0) == pytest.approx(2.0)

    def test_is_what_training_does(self, make):
        how = Recipe(epochs=4, batch_size=50, learning_rate=1e-2)
        model = build("deepset", in_features=4, hidden=4, layers=1, seed=0)
        history = fit(model, make(200), recipe=how)
        last_steps = [3, 7, 11, 15]
        assert [h["rate"] for h in history] == [how.rate(s, 16, highest=1e-2) for s in last_steps]


class TestFindRate:
    def model(self):
        return build("deepset", in_features=4, hidden=8, layers=2, seed=0)

    def test_network_is_not_changed(self, make):
        model = self.model()
        before = deepcopy(model.state_dict())
        find_rate(model, Batches(make()), LOSSES["squared"], Recipe(), seed=0)
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[name])

    def test_the_rate_learns(self, make):
        """Ten times less than found is slower, a hundred times more is worse."""
        how = Recipe(epochs=5, batch_size=20, learning_rate=None, clip=None)
        sets = make(400)
        found = fit(model := self.model(), sets, sets, recipe=how)
        rate = max(h["rate"] for h in found) / 1.0
        assert 1e-4 < rate < 0.1
        errors = {1: min(h["valid"] for h in found)}
        for factor in (0.03, 100):
            other = replace(how, learning_rate=rate * factor)
            errors[factor] = min(h["valid"] for h in fit(self.model(), sets, sets, recipe=other))
        assert errors[1] < min(errors[0.03], errors[100])
        assert model.unit.item() != 1.0
