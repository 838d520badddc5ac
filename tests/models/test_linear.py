"""C-Linear: values are linear in the features of their own instance."""

import numpy as np
import pytest
import torch

import capnets
from capnets.models import build

SETTINGS = {"in_features": 3, "activation": "identity", "seed": 0}


@torch.no_grad()
def test_values_are_one_weight_per_feature():
    model = build("c-linear", outputs=2, **SETTINGS)
    layer = model.final
    x = torch.randn(4, 6, 3)
    torch.testing.assert_close(model.added_values(x), x @ layer.weight.T + layer.bias)
    assert capnets.models.parameters(model) == 2 * (3 + 1)


@torch.no_grad()
@pytest.mark.parametrize("aggregation", ["sum", "mean", "mean+sum", "any"])
def test_no_order_changes_the_prediction(aggregation):
    model = build("c-linear", aggregation=aggregation, baseline="learned", **SETTINGS)
    x = torch.randn(4, 6, 3)
    assert not model.ordered
    torch.testing.assert_close(model(x[:, [3, 1, 5, 0, 2, 4]]), model(x))


def test_instances_of_another_width_are_named():
    with pytest.raises(capnets.InputError, match="built for 3 features"):
        build("c-linear", **SETTINGS)(torch.zeros(1, 2, 4))


def test_values_of_sums_are_those_of_least_squares():
    draw = np.random.default_rng(0)
    weights = np.array([2.0, -1.0, 0.5])
    x = [draw.normal(size=(draw.integers(1, 9), 3)) for _ in range(200)]
    sets = capnets.Sets.from_arrays(x, y=[(own @ weights + 0.3).sum() for own in x])
    model = build("c-linear", **SETTINGS)
    capnets.fit(model, sets, recipe=capnets.Recipe(epochs=200, batch_size=20), seed=0)
    found = np.asarray(capnets.added_values(model, sets)).ravel()
    np.testing.assert_allclose(found, np.concatenate(x) @ weights + 0.3, atol=0.01)
