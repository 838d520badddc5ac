"""C-Pairs: closed forms against enumeration of all subsets."""

from itertools import combinations

import numpy as np
import pytest
import torch

from capnets.explain import interactions, shapley_values
from capnets.explain.interaction import _exact as exact_interactions
from capnets.explain.shapley import _exact as exact_shapley
from capnets.explain.value import SetValue
from capnets.models import Ensemble, build
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe


def pairs(**settings):
    return build("c-pairs", in_features=3, hidden=8, activation="identity", seed=0, **settings)


def ragged(count=30, most=7):
    """Sets labelled by a sum and by pairs of equal signs."""
    draw = np.random.default_rng(0)
    x = [draw.normal(size=(n, 3)) for n in draw.integers(1, most, size=count)]
    sets = Sets.from_arrays(x)
    y = [t[:, 0].sum() + sum(a[1] * b[1] for a, b in combinations(t, 2)) for t in x]
    return Sets(sets.instances, sets.index, sets.offsets, np.array(y))


@pytest.fixture(scope="module")
def trained():
    sets, members = ragged(), []
    for seed in range(2):
        model = pairs(baseline="learned")
        fit(model, sets, recipe=Recipe(epochs=60, batch_size=10, learning_rate=0.01), seed=seed)
        members.append(model)
    return sets, members[0], Ensemble(members)


@pytest.mark.parametrize("which", [1, 2])
def test_closed_forms_equal_enumeration(trained, which):
    """Trained networks, float32, every subset of every set; also the mean of two networks."""
    sets, model = trained[0], trained[which]
    found = shapley_values(model, sets)
    assert found.exact
    assert found.passes < 2 * len(sets) + 1
    value = SetValue(model, sets)
    scale = np.abs(value.predict(sets.index, sets.offsets)).max()
    np.testing.assert_allclose(found.values, exact_shapley(value), atol=1e-5 * scale)
    np.testing.assert_allclose(found.gaps, 0, atol=1e-5 * scale)
    table = interactions(model, sets)
    assert table.exact
    for k, size in enumerate(sets.sizes):
        if size > 1:
            first, second = np.triu_indices(size, k=1)
            expected = exact_interactions(value, np.array([k]), first, second)[0]
            np.testing.assert_allclose(table.matrix(k)[first, second], expected, atol=1e-5 * scale)


def test_learns_sums_and_pairs(trained):
    from capnets.evaluate import predict

    sets, model, _ = trained
    assert np.mean((predict(model, sets) - sets.y) ** 2) < 0.1 * np.var(sets.y)


def test_large_sets(trained):
    """10,000 instances: values, Shapley values, in one pass and as exact as float32 is."""
    _, model, _ = trained
    x = np.random.default_rng(1).normal(size=(10_000, 3)).astype("f4")
    found = shapley_values(model, Sets.from_arrays([x]))
    assert found.passes <= 2
    with torch.no_grad():
        wide = build("c-pairs", in_features=3, hidden=8, baseline="learned", activation="identity")
        wide.load_state_dict(model.state_dict())
        expected = wide.double().shapley(torch.from_numpy(x).double()[None])[0, :, 0]
    np.testing.assert_allclose(found.values, expected, rtol=1e-3, atol=1e-4 * expected.abs().max())


def test_several_outputs():
    """Each output has signs of its own; all of them sum to the prediction."""
    model = pairs(outputs=2).double()
    torch.nn.init.normal_(model.signs)
    x = torch.randn(3, 5, 3, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]
    with torch.no_grad():
        torch.testing.assert_close(model.shapley(x, mask).sum(1), model(x, mask))
        together = model.interactions(x, mask)
        own = model(x[0, :, None]).sum(0)  # five sets of one instance
        torch.testing.assert_close(own + together[0].sum((0, 1)) / 2, model(x[:1])[0])
        assert not together[1, 2:].any()
