"""A potential network is a capacity: monotone in the set, whatever the order."""

from itertools import combinations, permutations

import pytest
import torch

from capnets.errors import InputError
from capnets.models import build
from capnets.models.potential import PotentialNetwork
from capnets.nn.encoders import mlp


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
    """0 for nothing, and no subset is worth more than a set: every pair of subsets, five instances.

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
    """Half of the mean value is in every instance; bends go as far as sums of larger sets do."""
    model = build("c-potential", in_features=3, hidden=8, outputs=2, seed=0)
    bends = model.decoder[1].at.clone()
    model.start(unit=torch.tensor([2.0, 4.0]), label=torch.tensor([40.0, 8.0]), size=20.0)
    torch.testing.assert_close(model.unit * model.each_adds, torch.tensor([1.0, 0.2]))
    torch.testing.assert_close(model.decoder[1].at, 2 * bends)


def test_unknown_activation():
    with pytest.raises(InputError, match="unknown activation 'soft': did you mean 'softplus'"):
        PotentialNetwork(encoder=mlp(3, 4), sizes=(4, 4, 1), activation="soft")
