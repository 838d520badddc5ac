"""Recipes as records, their schedules, and the recipe of the paper."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.models import build
from capnets.sets.batch import Batches
from capnets.training.fit import fit
from capnets.training.recipe import PAPER, RECIPES, Recipe, recipe


class TestRecord:
    @pytest.mark.parametrize("name", RECIPES)
    def test_json(self, name):
        again = Recipe.from_dict(json.loads(json.dumps(RECIPES[name].to_dict())))
        assert again == RECIPES[name]

    def test_the_paper(self):
        """Adam with a constant rate of 0.001 on batches of 1000, at most 500 epochs."""
        paper = RECIPES["paper"]
        assert (paper.batch_size, paper.learning_rate, paper.epochs) == (1000, 1e-3, 500)
        assert (paper.schedule, paper.clip, paper.scale, paper.start) == (
            "constant", None, False, "torch",
        )  # fmt: skip
        assert (paper.weight_decay, paper.patience, paper.replay) == (0, 50, None)
        assert {paper.rate(step, 500) for step in range(500)} == {1e-3}

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"epochs": 0}, "epochs must be a number above 0, not 0"),
            ({"batch_size": -1}, "batch_size must be a number above 0"),
            ({"learning_rate": -1.0}, "learning_rate must be a number above 0"),
            ({"clip": 0.0}, "clip must be a number above 0"),
            ({"learning_rate": None}, "learning_rate must be a number above 0, not None"),
            ({"learning_rate": float("nan")}, "learning_rate must be a number above 0, not nan"),
            ({"epochs": "3"}, "epochs must be a number above 0, not '3'"),
            ({"patience": 0}, "patience must be a number above 0"),
            ({"schedule": "one-cyle"}, "unknown schedule 'one-cyle': did you mean 'one-cycle'"),
            ({"optimizer": "mune"}, "unknown optimizer 'mune': did you mean 'muon'"),
            ({"start": "wied"}, "unknown start 'wied': did you mean 'wide'"),
        ],
    )
    def test_refused(self, settings, message):
        with pytest.raises(InputError, match=message):
            Recipe(**settings)

    def test_recipes_recorded_by_earlier_versions(self):
        """Settings that were removed are ignored at their defaults, and named otherwise."""
        old = {"epochs": 7, "orders": 1, "rehearse": 30, "learning_rate": 0.01}
        assert Recipe.from_dict(old) == Recipe(epochs=7, replay=30, learning_rate=0.01)
        with pytest.raises(InputError, match="reads every set in 3 orders per step"):
            Recipe.from_dict({"orders": 3})
        with pytest.raises(InputError, match="searches for a learning rate, which was removed"):
            Recipe.from_dict({"learning_rate": None})

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
        how = Recipe(warmup=0.1, learning_rate=2.0)
        rates = np.array([how.rate(step, 1000) for step in range(1000)])
        assert rates.argmax() == 100
        assert rates.max() == pytest.approx(2.0)
        assert (np.diff(rates[:101]) > 0).all()
        assert (np.diff(rates[100:]) < 0).all()
        assert rates[0] == pytest.approx(0.08)
        assert 0 < rates[-1] < 1e-3

    def test_without_warmup(self):
        assert Recipe(warmup=0.0, learning_rate=2.0).rate(0, 10) == pytest.approx(2.0)

    def test_is_what_training_does(self, make):
        how = Recipe(epochs=4, batch_size=50, learning_rate=1e-2)
        model = build("deepset", in_features=4, hidden=4, layers=1, seed=0)
        history = fit(model, make(200), recipe=how)
        last_steps = [3, 7, 11, 15]
        assert [h["rate"] for h in history] == [how.rate(s, 16) for s in last_steps]


class TestPaper:
    def test_is_plain_adam(self, make):
        """The steps of `torch.optim.Adam` on the mean squared error, from the weights of torch."""
        sets, epochs = make(120), 5
        model = build("c-gru", in_features=4, hidden=4, layers=1, seed=0)
        twin = deepcopy(model)
        fit(model, sets, recipe=replace(PAPER, epochs=epochs, reshuffle=False))
        optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3)
        (batch,) = Batches(sets).epoch(size=1000)
        for _ in range(epochs):
            optimizer.zero_grad()
            nn.functional.mse_loss(twin(batch.x, batch.mask), batch.y).backward()
            optimizer.step()
        assert twin.unit.item() == model.unit.item() == 1.0
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
