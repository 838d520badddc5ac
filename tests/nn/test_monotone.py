"""Monotone layers are monotone, can bend either way, and start with gradients."""

import pytest
import torch

from capnets.models.capacity import ACTIVATIONS, INVERSES
from capnets.nn.monotone import Bend, MonotoneLinear, monotone_mlp

POSITIVE = ["abs", "softplus"]


def stack(activation="abs", sizes=(4, 8, 8, 2), seed=0):
    torch.manual_seed(seed)
    return monotone_mlp(*sizes, positive=ACTIVATIONS[activation], inverse=INVERSES[activation])


@torch.no_grad()
@pytest.mark.parametrize("activation", POSITIVE)
def test_grows_where_any_input_grows(activation):
    net = stack(activation).double()
    generator = torch.Generator().manual_seed(1)
    for p in net.parameters():  # any weights, not only those of the beginning
        p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype))
    x = 3 * torch.randn(200, 4, generator=generator, dtype=torch.float64)
    more = x + torch.rand(200, 4, generator=generator, dtype=torch.float64)
    assert (net(more) >= net(x)).all()
    assert (net(more) > net(x)).any()


@torch.no_grad()
def test_signed_weights_need_not():
    net = stack("identity").double()
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1), dtype=p.dtype))
    x = torch.randn(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert (net(x + 1) < net(x)).any()


@torch.no_grad()
@pytest.mark.parametrize(("up_to", "beyond"), [(1.0, 0.0), (0.0, 1.0), (2.0, 2.0)])
def test_one_unit_bends_either_way(up_to, beyond):
    """min(u, 2) is concave, max(u - 2, 0) convex, and both together are the line again."""
    bend = Bend(1)
    bend.at.fill_(2.0)
    u = torch.linspace(-1, 5, 25)[:, None]
    found = bend(u) @ torch.tensor([up_to, beyond])
    expected = [up_to * min(float(v), 2.0) + beyond * max(float(v) - 2.0, 0.0) for v in u]
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_start_weights(activation):
    """They are what was meant, behind the function that makes them positive."""
    net = stack(activation, sizes=(32, 32, 32, 1))
    first, _, second, _, last = net
    for layer, gain in ((first, 1.0), (second, 2.0), (last, 10.0)):
        assert (layer.weights >= 0).all()
        torch.testing.assert_close(
            layer.weights.sum(1), torch.full((layer.out_features,), gain), rtol=0.05, atol=0
        )
    # Few inputs of a unit have almost all of its weight.
    assert (first.weights.topk(4, dim=1).values.sum(1) > 0.8).float().mean() > 0.9


def test_seed_decides():
    layers = [MonotoneLinear(4, 3, positive=torch.abs) for _ in range(3)]
    for layer, seed in zip(layers, (1, 1, 2), strict=True):
        layer.draw_weights(torch.Generator().manual_seed(seed))
    assert torch.equal(layers[0].weight, layers[1].weight)
    assert not torch.equal(layers[0].weight, layers[2].weight)
