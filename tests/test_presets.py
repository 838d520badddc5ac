"""Ensembles, and presets by the amount of data."""

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.models import ModelSpec
from capnets.sets import Sets
from capnets.training.callbacks import EpochEnd
from capnets.training.fit import fit
from capnets.training.presets import PRESETS, preset_for
from capnets.training.recipe import RECIPES, recipe


def some_sets():
    generator = np.random.default_rng(0)
    X = [generator.normal(size=(generator.integers(1, 5), 3)) for _ in range(30)]
    return Sets.from_arrays(X, y=[x.sum() for x in X])


@pytest.mark.parametrize("name", ["c-gru", "c-lstm", "c-rnn"])
def test_an_ensemble_is_the_mean_of_its_members_in_every_way(name):
    model = ModelSpec(name, in_features=3, members=3, inputs="standardize").build(0).eval()
    x = torch.randn(4, 6, 3)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1], [3]])
    members = [m(x, mask) for m in model.each]
    assert not torch.allclose(members[0], members[1])
    torch.testing.assert_close(model(x, mask), sum(members) / 3)
    torch.testing.assert_close(model.added_values(x, mask).sum(1), model(x, mask))
    state, values = model.initial_state(4), []
    for k in range(6):
        value, state = model.step(x[:, k], state)
        values.append(value)
    torch.testing.assert_close(torch.stack(values, 1), model.added_values(x))


def test_only_capacity_networks_step():
    model = ModelSpec("deepset", in_features=3, members=2).build(0)
    assert not model.additive
    assert not model.ordered
    with pytest.raises(InputError, match="one instance at a time"):
        model.initial_state()


def test_members_are_trained_apart_and_resume_with_the_same_bits(tmp_path):
    sets, how = some_sets(), recipe("small", epochs=3)
    spec = ModelSpec("c-rnn", in_features=3, hidden=4, members=2, inputs="standardize", dropout=0.5)
    whole = spec.build(0)
    history = fit(whole, sets, recipe=how, seed=5)
    assert [(h["member"], h["epoch"]) for h in history] == [
        (m, e) for m in (0, 1) for e in (1, 2, 3)
    ]

    class KilledError(Exception):
        pass

    def kill(line, seen=[]):  # noqa: B006 - counts across calls on purpose
        seen.append(line)
        if len(seen) == 5:
            raise KilledError

    assert all(member.inputs.mean.any() for member in whole.each), "features are standardized"
    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        fit(
            spec.build(0),
            sets,
            recipe=how,
            seed=5,
            checkpoint=checkpoint,
            callbacks=[EpochEnd(kill)],
        )
    again = spec.build(0)
    fit(again, sets, recipe=how, seed=5, checkpoint=checkpoint)
    for one, two in zip(whole.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_dropout_needs_standardised_features():
    with pytest.raises(InputError, match="standardize"):
        ModelSpec("c-gru", dropout=0.5)


def test_features_are_blanked_below_two_sets_per_feature():
    assert preset_for(767, 384).dropout == 0.5
    assert preset_for(768, 384).dropout == 0


def test_every_preset_names_a_recipe():
    for preset in PRESETS.values():
        assert preset.recipe in RECIPES


def test_networks_grow_with_the_number_of_sets():
    chosen = [preset_for(sets, 40) for sets in (99, 100, 999, 1000, 4999, 5000)]
    names = ("tiny", "small", "small", "medium", "medium", "large")
    assert chosen == [PRESETS[name] for name in names]
