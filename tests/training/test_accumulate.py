"""Gradient accumulation: several batches per step do what one large batch does."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from capnets.errors import InputError
from capnets.models import build
from capnets.sets import Sets
from capnets.training.callbacks import EpochEnd
from capnets.training.fit import fit
from capnets.training.priors import UpperBound
from capnets.training.recipe import Recipe
from small_networks import bits, network

WHOLE = Recipe(epochs=2, batch_size=30)
PARTS = replace(WHOLE, batch_size=10, accumulate=3)


def gradients(model, sets, recipe, **how) -> list[list[torch.Tensor]]:
    """Return the gradients of every step."""
    found = []

    def look(optimizer, *_):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        found.append([p.grad.clone() for p in parameters])

    hook = register_optimizer_step_pre_hook(look)
    try:
        found.append(fit(model, sets, recipe=recipe, **how))
    finally:
        hook.remove()
    return found


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_one_large_batch(make, loss, weighted):
    """The last step of an epoch has 20 sets: two batches, as 200 is not a multiple of 30."""
    sets = make()
    if weighted:
        draw = np.random.default_rng(1)
        sets = replace(sets, weights=draw.uniform(0.1, 3, 200) * (draw.random(200) < 0.7))
    *whole, history = gradients(network(), sets, WHOLE, loss=loss)
    *parts, other = gradients(network(), sets, PARTS, loss=loss)
    assert len(whole) == len(parts) == 2 * 7
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(parts[-1], whole[-1], rtol=1e-2, atol=1e-3)
    for ours, theirs in zip(other, history, strict=True):
        assert ours["train"] == pytest.approx(theirs["train"], rel=1e-4)
        assert ours["rate"] == theirs["rate"]


@pytest.mark.parametrize("name", ["c-deepset", "deepset", "gru", "c-pool"])
def test_other_networks(make, name):
    """Also those that read pooled statistics."""
    whole, parts = (
        gradients(build(name, in_features=4, hidden=8, seed=0), make(), recipe)
        for recipe in (WHOLE, PARTS)
    )
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-5, atol=1e-6)


def test_classes(make):
    sets = make()
    sets = replace(sets, y=(sets.y > 2).astype(np.int64))
    whole, parts = (
        gradients(network(outputs=2, activation="identity"), sets, recipe, loss="softmax")
        for recipe in (WHOLE, PARTS)
    )
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-5, atol=1e-6)


def test_batches_of_a_number_of_instances():
    """A step of eight sets that are read one by one: two do not fit into a batch."""
    draw = np.random.default_rng(0)
    sets = Sets.from_arrays(
        [draw.normal(size=(9, 4)).astype(np.float32) for _ in range(40)], y=draw.uniform(0, 5, 40)
    )
    recipe = Recipe(epochs=1, batch_size=8)
    whole = gradients(network(), sets, recipe)
    parts = gradients(network(), sets, replace(recipe, batch_instances=10, accumulate=8))
    assert len(whole) == len(parts) == 5 + 1
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-5, atol=1e-6)


def test_one_batch_per_step_is_the_default():
    assert Recipe() == Recipe(accumulate=1)
    assert Recipe.from_dict({"epochs": 3}).accumulate == 1, "recorded by an earlier version"
    for wrong in (0, 1.5, -2, None):
        with pytest.raises(InputError, match="accumulate must be a whole number above 0"):
            Recipe(accumulate=wrong)


def test_steps_without_weight(make):
    sets = replace(make(40), weights=np.repeat([1.0, 0.0], [2, 38]))
    history = fit(network(), sets, recipe=Recipe(epochs=2, batch_size=2, accumulate=2))
    assert np.isfinite([line["train"] for line in history]).all()


def test_resumes_with_the_same_bits(make, tmp_path):
    whole, halves, place = network(), network(), tmp_path / "checkpoint"
    recipe = replace(PARTS, epochs=4, replay=1.5)
    fit(whole, make(), recipe=recipe)

    def stop(line):
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(halves, make(), recipe=recipe, checkpoint=place, callbacks=[EpochEnd(stop)])
    with pytest.raises(InputError, match="recipe differs"):
        fit(halves, make(), recipe=replace(recipe, accumulate=2), checkpoint=place)
    fit(halves, make(), recipe=recipe, checkpoint=place)
    assert bits(halves) == bits(whole)


def test_what_reads_a_whole_batch(make):
    """Penalties and joint losses are not sums over the sets of several batches."""
    with pytest.raises(InputError, match="a prior is a penalty on the sets of one batch"):
        fit(network(), make(), recipe=PARTS, priors=[UpperBound(bound=1.0)])
    sets = make()
    sets = replace(sets, y=np.stack([sets.y, np.ones_like(sets.y)], axis=1))
    with pytest.raises(InputError, match="accumulate: 'cox' compares the sets of one batch"):
        fit(network(activation="identity"), sets, recipe=PARTS, loss="cox")
