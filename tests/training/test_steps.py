"""Training steps: clipping, set weights, units."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from capnets.evaluate import predict
from capnets.sets import Sets
from capnets.training.fit import fit, measure
from capnets.training.losses import LOSSES
from capnets.training.recipe import Recipe
from small_networks import LONG, QUICK, network


def gradient_norms(make, recipe: Recipe) -> list[float]:
    norms: list[float] = []

    def look(optimizer, *_):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
        norms.append(float(torch.stack([g.norm() for g in grads]).norm()))

    hook = register_optimizer_step_pre_hook(look)
    try:
        fit(network(), make(), recipe=recipe)
    finally:
        hook.remove()
    return norms


def test_clipping(make):
    free = gradient_norms(make, replace(QUICK, clip=None))
    assert len(free) == 3 * 4, "three epochs of four batches"
    assert max(free) > 0.1
    clipped = gradient_norms(make, replace(QUICK, clip=0.1))
    assert max(clipped) == pytest.approx(0.1, rel=1e-3)
    assert clipped[0] == pytest.approx(min(free[0], 0.1), rel=1e-3)


class TestWeights:
    FULL = Recipe(epochs=30, batch_size=1000, learning_rate=0.02, reshuffle=False)

    def contradicting(self, weights) -> Sets:
        """The same set twice, with the labels 1 and 3."""
        ones = np.ones((1, 4), np.float32)
        return Sets.from_arrays([ones, ones], y=[1.0, 3.0], weights=np.array(weights, float))

    @pytest.mark.parametrize(("weights", "mean"), [([1, 0], 1), ([0, 1], 3), ([1, 3], 2.5)])
    def test_pull(self, weights, mean):
        sets, model = self.contradicting(weights), network()
        fit(model, sets, recipe=replace(self.FULL, epochs=200))
        assert predict(model, sets) == pytest.approx([mean, mean], abs=0.02)

    def test_weight_two_is_the_set_twice(self, make):
        sets = make(40)
        doubled = sets.subset([*range(40), *range(10)])
        weighted = replace(sets, weights=np.repeat([2.0, 1.0], [10, 30]))
        recipe = replace(self.FULL, scale=False)  # the mean label counts sets, not weights
        one, two = network(), network()
        for model, part in ((one, doubled), (two, weighted)):
            fit(model, part, recipe=recipe)
        np.testing.assert_allclose(predict(one, sets), predict(two, sets), rtol=1e-4)

    def test_validation_is_weighted(self, make):
        model, sets = network(), self.contradicting([3, 1])
        error = (predict(model, sets) - sets.y) ** 2
        assert measure(model, sets, LOSSES["squared"]) == pytest.approx(
            (3 * error[0] + error[1]) / 4, rel=1e-5
        )

    def test_a_batch_without_weight(self, make):
        """Sets that do not count may fill a whole batch."""
        sets = replace(make(20), weights=np.repeat([1.0, 0.0], [2, 18]))
        history = fit(network(), sets, recipe=Recipe(epochs=2, batch_size=2))
        assert np.isfinite([h["train"] for h in history]).all()


class TestScaling:
    def test_data_are_never_changed(self, make):
        sets, valid = make(), make(50, seed=1)
        before = [a.copy() for s in (sets, valid) for a in (s.instances, s.index, s.offsets, s.y)]
        for s in (sets, valid):
            for array in (s.instances, s.index, s.offsets, s.y):
                array.setflags(write=False)
        fit(network(), sets, valid, recipe=QUICK)
        after = [a for s in (sets, valid) for a in (s.instances, s.index, s.offsets, s.y)]
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_unit(self, make):
        model, sets = network(), make()
        fit(model, sets, recipe=QUICK)
        expected = sets.y.std() / np.sqrt(sets.sizes.mean())
        assert model.unit.tolist() == pytest.approx([expected])
        assert "unit" in model.state_dict(), "predictions of a loaded network need it"
        assert all(p is not model.unit for p in model.parameters())

    def test_unscaled(self, make):
        model = network()
        fit(model, make(), recipe=replace(QUICK, scale=False))
        assert model.unit.tolist() == [1.0]

    @pytest.mark.parametrize("factor", [2.0**20, 2.0**-20])
    def test_the_unit_of_labels_does_not_matter(self, make, factor):
        """Cents or euros: with a power of two not a bit is different."""
        sets = make()
        other = replace(sets, y=sets.y * np.float32(factor))
        one, two = network(), network()
        fit(one, sets, sets, recipe=QUICK)
        fit(two, other, other, recipe=QUICK)
        np.testing.assert_array_equal(predict(two, sets), predict(one, sets) * factor)

    def test_constant_labels(self, make):
        sets = replace(make(), y=np.full(200, 7.0, np.float32))
        model = network(activation="identity")
        fit(model, sets, recipe=LONG)
        assert predict(model, sets) == pytest.approx(7.0, abs=0.5)

    def test_several_outputs_have_their_own_units(self, make):
        sets = make()
        sets = replace(sets, y=np.stack([sets.y, 1000 * sets.y], axis=1))
        model = network(outputs=2)
        fit(model, sets, recipe=LONG)
        assert model.unit[1] == pytest.approx(1000 * float(model.unit[0]))
        share = np.abs(predict(model, sets) - sets.y).mean(0) / sets.y.std(0)
        assert (share < 0.8).all()
