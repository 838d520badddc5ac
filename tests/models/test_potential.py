"""A potential network is a capacity: monotone in the set, whatever the order."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.evaluate import added_values, evaluate
from capnets.models import build
from capnets.models.potential import PotentialNetwork
from capnets.nn.encoders import mlp
from capnets.sets import Sets, offsets_of
from capnets.training.fit import fit
from capnets.training.recipe import Recipe


def potential(activation="abs", **settings):
    """A network with weights as training might leave them."""
    model = build("c-potential", in_features=3, hidden=8, activation=activation, seed=2, **settings)
    model = model.double().eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.decoder.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return model


def instances(size, sets=6):
    generator = torch.Generator().manual_seed(4)
    return 3 * torch.randn(sets, size, 3, generator=generator, dtype=torch.float64)


@torch.no_grad()
@pytest.mark.parametrize("activation", ["abs", "softplus"])
def test_is_a_capacity(activation):
    """The empty set is worth 0, and no subset more than the set: all subsets of five instances.

    A recurrent capacity network only promises this for prefixes.
    """
    model, x = potential(activation), instances(5)
    worth = {
        chosen: model(x[:, list(chosen)])
        for size in range(6)
        for chosen in combinations(range(5), size)
    }
    assert not worth[()].any()
    for chosen, value in worth.items():
        for other in set(range(5)) - set(chosen):
            larger = worth[tuple(sorted((*chosen, other)))]
            assert (larger >= value - 1e-12).all()


@torch.no_grad()
@pytest.mark.parametrize("activation", ["abs", "identity", "softplus"])
def test_every_order_gives_the_same(activation):
    model, x = potential(activation), instances(4)
    prediction = model(x)
    for order in permutations(range(4)):
        torch.testing.assert_close(model(x[:, list(order)]), prediction, rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_exchanged_neighbours_add_the_same():
    """v_i(C) + v_j(C + i) = v_j(C) + v_i(C + j), though each of the values changes."""
    model, x = potential(), instances(5)
    values = model.added_values(x)
    exchanged = model.added_values(x[:, [0, 1, 3, 2, 4]])
    torch.testing.assert_close(values[:, 2:4].sum(1), exchanged[:, 2:4].sum(1))
    assert not torch.allclose(values[:, 2], exchanged[:, 3])


@torch.no_grad()
def test_values_may_be_signed():
    model = potential("identity")
    model.final.weight.neg_()
    assert (model.added_values(instances(6)) < 0).any()


@torch.no_grad()
def test_start():
    """The constant part of a value is what the sums lack; bends scale with the set size."""
    model = build("c-potential", in_features=3, hidden=8, outputs=2, seed=0)
    bends = model.decoder[1].at.clone()
    model.start(unit=torch.tensor([2.0, 4.0]), label=torch.tensor([400.0, 8.0]), size=20.0)
    torch.testing.assert_close(model.each_adds, torch.tensor([10.0 - 2.0, 0.01]))
    torch.testing.assert_close(model.decoder[1].at, 2 * bends)


def test_unknown_activation():
    with pytest.raises(InputError, match="unknown activation 'soft': did you mean 'softplus'"):
        PotentialNetwork(encoder=mlp(3, 4), sizes=(4, 4, 1), activation="soft")


@pytest.mark.parametrize("start", ["wide", "torch"])
def test_learns_what_is_distinct(start):
    """Learn a concave function of counts from sets of one to five; values are 1 or 0."""
    draw = np.random.default_rng(0)
    offsets = offsets_of(draw.integers(1, 6, size=200))
    index = draw.integers(4, size=offsets[-1])
    y = [len(set(index[a:b])) for a, b in pairwise(offsets)]
    sets = Sets(np.eye(4, dtype=np.float32), index, offsets, np.array(y, np.float32))
    model = build("c-potential", in_features=4, hidden=8, layers=2, seed=0)
    how = Recipe(epochs=40, batch_size=20, learning_rate=0.02, start=start)
    fit(model, sets, recipe=how)
    assert evaluate(model, sets)["mse"] < 0.05
    seen = [c in index[a:k] for a, b in pairwise(offsets) for k, c in enumerate(index[a:b], a)]
    expected = 1.0 - np.array(seen)
    assert np.abs(added_values(model, sets) - expected).mean() < 0.15


def test_estimator_explains():
    """An estimator has signed values that sum to the prediction."""
    draw = np.random.default_rng(1)
    x = [draw.normal(size=(n, 3)) for n in draw.integers(1, 6, size=60)]
    y = np.array([table[:, 0].max() - table[:, 1].sum() for table in x])
    estimator = SetRegressor("c-potential", members=1, epochs=40, random_state=0).fit(x, y)
    values = np.split(estimator.added_values(x), np.cumsum([len(table) for table in x])[:-1])
    np.testing.assert_allclose(
        [v.sum() for v in values], estimator.predict(x), rtol=1e-4, atol=1e-4
    )
    assert min(v.min() for v in values) < 0
    assert estimator.score(x, y) > 0.5
