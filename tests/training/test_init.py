"""Initialization: scale of the signal, mean label, scale of features."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from capnets.evaluate import predict
from capnets.models import MODELS, CapacityNetwork, build
from capnets.nn.cells import Cell, GRUCell
from capnets.nn.encoders import mlp
from capnets.sets import Sets
from capnets.sets.batch import Batches
from capnets.training.init import begin, draw_weights
from capnets.training.losses import LOSSES
from capnets.training.recipe import Recipe


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal_sets(sets=200, features=64) -> Sets:
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=(n, features)) for n in draw.integers(3, 12, size=sets)]
    return Sets.from_arrays(arrays, y=[50 + 10 * a[:, 0].sum() for a in arrays])


def signal(model, x) -> list[float]:
    """Share of the difference between instances that remains after each layer.

    Biases make activations large without carrying anything: what counts is the deviation over
    instances.
    """
    sizes = []
    for layer in [*model.encoder, model.cell, *model.decoder]:
        x = layer(x)
        x = x[0] if isinstance(layer, Cell) else x
        if not isinstance(layer, nn.ReLU):
            sizes.append(float(x.flatten(0, 1).std(0).square().mean().sqrt()))
    return sizes


class TestWide:
    @pytest.mark.parametrize("name", ["c-rnn", "c-lstm", "c-gru"])
    @torch.no_grad()
    def test_signal_keeps_its_size(self, name):
        x = torch.randn(300, 10, 64, generator=generator())
        model = build(name, in_features=64, seed=0)
        before = signal(model, x)
        assert before[-1] < 0.02, "torch's own start leaves nothing: else nobody needs another"
        draw_weights(model, generator())
        after = signal(model, x)
        assert all(0.05 < size < 3 for size in after), after
        assert after[-1] > 10 * before[-1]

    def test_nothing_in_the_way_of_networks_of_other_parts(self):
        """Layers that are no stack of linear ones keep what they were built with."""
        model = build("set-transformer-l", in_features=8, hidden=8, seed=0)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        draw_weights(model, generator())
        assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())

    @pytest.mark.parametrize("name", [n for n in MODELS if "transformer" not in n])
    def test_same_seed_same_weights(self, name):
        one, two, other = (build(name, in_features=8, hidden=8, seed=k) for k in (0, 0, 0))
        for model, seed in ((one, 5), (two, 5), (other, 6)):
            draw_weights(model, generator(seed))
        same = [torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True)]
        assert all(same)
        redrawn = [
            not torch.equal(a, b)
            for a, b in zip(one.parameters(), other.parameters(), strict=True)
            if a.ndim > 1
        ]
        assert any(redrawn)

    def test_layers_without_bias(self):
        model = CapacityNetwork(
            encoder=nn.Sequential(nn.Linear(3, 8, bias=False), nn.ReLU()),
            cell=GRUCell(8, 4),
            decoder=mlp(4, 1),
        )
        draw_weights(model, generator())

    def test_start_torch_keeps_what_was_given(self):
        model = build("c-gru", in_features=64, seed=3)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        how = Recipe(start="torch", scale=False)
        begin(model, Batches(normal_sets()), how, LOSSES["squared"], seed=0)
        assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


class TestLevel:
    @pytest.mark.parametrize("activation", ["abs", "identity", "softplus"])
    @pytest.mark.parametrize("name", ["c-gru", "gru", "deepset", "set-transformer"])
    def test_begins_near_the_mean_label(self, name, activation):
        sets = normal_sets()
        model = build(name, in_features=64, activation=activation, seed=0)
        begin(model, Batches(sets), Recipe(start="torch"), LOSSES["squared"], seed=0)
        off = abs(predict(model, sets).mean() - sets.y.mean())
        assert off < 0.5 * sets.y.std()
        assert abs(0 - sets.y.mean()) > 1.5 * sets.y.std(), "near the mean is also near 0"

    def test_classes_have_no_unit(self):
        sets = replace(normal_sets(), y=(np.arange(200) % 4 == 0).astype(np.float32))
        model = build("gru", in_features=64, seed=0)
        begin(model, Batches(sets), Recipe(start="torch"), LOSSES["logistic"], seed=0)
        assert model.unit.tolist() == [1.0]
        share = 1 / (1 + np.exp(-predict(model, sets)))
        assert share.mean() == pytest.approx(0.25, abs=0.05)


def test_standardisation_is_learned_from_the_instances_in_sets():
    """Rows that no set uses do not count, and a row counts once however often it is used."""
    draw = np.random.default_rng(0)
    pool = draw.normal(5, 3, size=(50, 4)).astype(np.float32)
    pool[40:] = 1e6
    pool[:, 3] = 2.0
    sets = Sets(pool, np.r_[np.arange(40), np.zeros(20, int)], np.array([0, 30, 60]), [1.0, 2.0])
    model = build("gru", in_features=4, inputs="standardize", seed=0)
    begin(model, Batches(sets), Recipe(), LOSSES["squared"], seed=0)
    np.testing.assert_allclose(model.inputs.mean, pool[:40].mean(0), rtol=1e-5)
    np.testing.assert_allclose(1 / model.inputs.scale[:3], pool[:40, :3].std(0), rtol=1e-4)
    assert model.inputs.scale[3] == 1


def test_standardisation_in_blocks_is_that_of_the_whole():
    draw = np.random.default_rng(0)
    pool = draw.normal(100, 1 + np.arange(64) / 10, size=(40_000, 64)).astype(np.float16)
    sets = Sets(pool, np.arange(39_000), np.array([0, 5_000, 39_000]), [1.0, 2.0])
    model = build("gru", in_features=64, inputs="standardize", seed=0)
    begin(model, Batches(sets), Recipe(), LOSSES["squared"], seed=0)
    wide = pool[:39_000].astype(np.float64)
    np.testing.assert_allclose(model.inputs.mean, wide.mean(0), rtol=1e-6)
    np.testing.assert_allclose(1 / model.inputs.scale, wide.std(0), rtol=1e-6)
