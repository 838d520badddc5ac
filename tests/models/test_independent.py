"""C-Independent: an instance does not know the others."""

import pytest
import torch

from capnets.models import build

SETTINGS = {"in_features": 3, "hidden": 8, "activation": "identity", "seed": 0}


@torch.no_grad()
def test_values_of_a_sum_depend_on_their_own_instance_only():
    model = build("c-independent", baseline="learned", **SETTINGS)
    x = torch.randn(4, 6, 3)
    alone = model.added_values(x.flatten(0, 1)[:, None])[:, 0]
    torch.testing.assert_close(model.added_values(x).flatten(0, 1), alone)


@torch.no_grad()
@pytest.mark.parametrize("aggregation", ["sum", "mean", "mean+sum", "any"])
def test_no_order_changes_the_prediction(aggregation):
    model = build("c-independent", aggregation=aggregation, baseline="learned", **SETTINGS)
    x = torch.randn(4, 6, 3)
    assert not model.ordered
    assert not model.positional
    torch.testing.assert_close(model(x[:, [3, 1, 5, 0, 2, 4]]), model(x))


def test_state_is_empty_without_sums():
    assert build("c-independent", **SETTINGS).initial_state(2).shape == (2, 0)
    assert build("c-independent", aggregation="any", **SETTINGS).initial_state(2).shape == (2, 1)
