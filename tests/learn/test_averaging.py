"""Predictions and values averaged over orders."""

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import added_values, predict
from capnets.learn.averaging import mean_added_values, mean_prediction
from capnets.models import ModelSpec
from capnets.nn.projection import COMPONENTS
from capnets.sets import Sets
from capnets.sets.orders import Orders
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

FEATURES = COMPONENTS + 8


@pytest.fixture
def wide() -> Sets:
    draw = np.random.default_rng(0)
    sizes = draw.integers(1, 6, 12)
    x = draw.normal(size=(sizes.sum() + 5, FEATURES)).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Sets(x, draw.permutation(len(x))[: offsets[-1]], offsets, draw.normal(size=(12, 1)))


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", ["c-gru", "c-pool"])
def test_components_computed_once_give_the_same_means(wide, name, members):
    spec = ModelSpec(
        name, in_features=FEATURES, hidden=4, inputs="project", activation="identity",
        members=members,
    )  # fmt: skip
    model = spec.build(0)
    fit(model, wide, recipe=Recipe(epochs=1))
    orders = Orders.random(4, seed=1)
    some = wide.subset([7, 2, 9])
    expected = orders.mean(some, lambda read: predict(model, read))
    found = mean_prediction(model, some, orders if model.ordered else Orders())
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4, atol=1e-5)
    expected = orders.mean(some, lambda read: added_values(model, read), per_instance=True)
    found = mean_added_values(model, some, orders)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4, atol=1e-5)
    assert not model.training


def test_missing_values_are_named(wide):
    model = ModelSpec("c-gru", in_features=FEATURES, hidden=4, inputs="project").build(0)
    x = np.array(wide.instances)
    x[wide.index[3], 5] = np.nan
    broken = Sets(x, wide.index, wide.offsets)
    with pytest.raises(InputError, match="set"):
        mean_prediction(model, broken, Orders.random(2))
    assert torch.is_grad_enabled()
