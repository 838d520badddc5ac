"""Networks agree with reference implementations of their equations in float64."""

import pytest
import torch

from capnets.models import ModelSpec, build
from capnets.models.capacity import ACTIVATIONS
from models.equations import EQUATIONS, capacity_values

SIZES = (3, 1, 4, 2)


def ragged(features: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(len(SIZES), max(SIZES), features, generator=generator, dtype=torch.float64)
    return x, torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]


@torch.no_grad()
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("name", EQUATIONS)
def test_prediction(name, layers, outputs):
    spec = ModelSpec(name, in_features=5, hidden=8, layers=layers, outputs=outputs)
    model = spec.build(3).double()
    x, mask = ragged(5)
    prediction = model(x, mask)
    assert prediction.dtype == torch.float64
    for k, size in enumerate(SIZES):
        expected = EQUATIONS[name](model, x[k, :size])
        torch.testing.assert_close(prediction[k], expected, rtol=1e-11, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", ["c-rnn", "c-lstm", "c-gru", "c-deepset"])
def test_added_values(name, activation):
    model = build(name, in_features=5, hidden=8, activation=activation, seed=4).double()
    model.unit.fill_(2.5)
    x, mask = ragged(5)
    values = model.added_values(x, mask)
    for k, size in enumerate(SIZES):
        expected = 2.5 * torch.stack(capacity_values(model, x[k, :size]))
        torch.testing.assert_close(values[k, :size], expected, rtol=1e-11, atol=1e-12)
        assert not values[k, size:].any()


@pytest.mark.parametrize(
    "name", ["rnn", "lstm", "gru", "c-rnn", "c-lstm", "c-gru", "c-deepset", "c-potential"]
)
def test_gradients(name):
    """Hand-written gradients agree with those that torch derives from the equations."""
    model = build(name, in_features=4, hidden=6, seed=5).double()
    x, mask = ragged(4)
    names, parameters = zip(*model.named_parameters(), strict=True)
    fast = torch.autograd.grad(model(x, mask).pow(2).sum(), parameters)
    slowly = sum(EQUATIONS[name](model, x[k, :n]).pow(2).sum() for k, n in enumerate(SIZES))
    for which, got, expected in zip(
        names, fast, torch.autograd.grad(slowly, parameters), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11, msg=which)
