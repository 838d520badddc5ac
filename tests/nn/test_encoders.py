"""Encoders and decoders: shapes and declared features."""

import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.nn.encoders import (
    ConvEncoder,
    Standardize,
    decoder,
    each,
    encode_and_pool,
    encoder,
    features_read,
    final_layer,
    mlp,
)


def sizes(layers: nn.Sequential) -> list[tuple[int, int]]:
    return [(m.in_features, m.out_features) for m in layers if isinstance(m, nn.Linear)]


def test_mlp_has_relu_between_and_not_behind():
    assert [type(m) for m in mlp(3, 4, 5)] == [nn.Linear, nn.ReLU, nn.Linear]


def test_shapes_of_the_paper():
    assert sizes(encoder(64, 32)) == [(64, 64), (64, 64), (64, 32)]
    assert sizes(encoder(64, 32, layers=2)) == [(64, 64), (64, 32)]
    assert sizes(decoder(32, 1)) == [(32, 32), (32, 32), (32, 32), (32, 1)]
    assert sizes(decoder(32, 1, layers=2)) == [(32, 32), (32, 32), (32, 1)]


@pytest.mark.parametrize(("sets", "size"), [(4, 5), (1, 5), (4, 1), (0, 5), (4, 0)])
def test_each_instance_on_its_own_but_step_by_step_in_memory(sets, size):
    network, x = mlp(3, 8, 2), torch.randn(sets, size, 3)
    y = each(network, x)
    torch.testing.assert_close(y, network(x))
    assert y.transpose(0, 1).is_contiguous()


def test_each_picture_keeps_its_shape():
    network, x = ConvEncoder(3), torch.rand(2, 4, 1, 8, 8)
    torch.testing.assert_close(each(network, x), network(x))


class TestEncodeAndPool:
    """The last layer of an encoder is applied to what is pooled: fewer rows, the same numbers."""

    weights = torch.rand(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def pool(self, h):
        return (self.weights[:, :, None] * h).sum(1)

    @pytest.mark.parametrize("widths", [(3, 2), (3, 8, 2), (3, 8, 8, 2)], ids=len)
    def test_the_same_numbers_and_gradients(self, widths):
        network, x = mlp(*widths).double(), torch.randn(4, 5, 3, dtype=torch.float64)
        found, expected = encode_and_pool(network, x, self.pool), self.pool(network(x))
        torch.testing.assert_close(found, expected)
        for ours, theirs in zip(
            torch.autograd.grad(found.square().sum(), network.parameters()),
            torch.autograd.grad(expected.square().sum(), network.parameters()),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs)

    @pytest.mark.parametrize("last", [nn.ReLU(), nn.Linear(8, 2, bias=False), mlp(8, 4, 2)])
    def test_other_last_layers(self, last):
        network = nn.Sequential(nn.Linear(3, 8), last).double()
        x = torch.randn(4, 5, 3, dtype=torch.float64)
        found = encode_and_pool(network, x, self.pool)
        torch.testing.assert_close(found, self.pool(network(x)))

    @pytest.mark.parametrize("network", [nn.Sequential(), nn.Identity(), nn.Linear(3, 2).double()])
    def test_no_layers_or_one(self, network):
        x = torch.randn(4, 5, 3, dtype=torch.float64)
        found = encode_and_pool(network, x, self.pool)
        torch.testing.assert_close(found, self.pool(network(x)))

    def test_hooks_see_every_instance(self):
        network, seen = mlp(3, 8, 2).double(), []
        network[-1].register_forward_hook(lambda module, args, y: seen.append(y.shape))
        encode_and_pool(network, torch.randn(4, 5, 3, dtype=torch.float64), self.pool)
        assert seen == [(20, 2)]


def test_no_layers():
    with pytest.raises(InputError, match="at least one layer, not 0"):
        encoder(64, 32, layers=0)


def test_features_read():
    assert features_read(mlp(7, 3)) == features_read(nn.Linear(7, 3)) == 7
    assert features_read(nn.Sequential(nn.Sequential(nn.Linear(7, 3)))) == 7
    assert features_read(nn.Sequential(nn.Tanh(), nn.Linear(7, 3))) is None
    assert features_read(nn.Sequential()) is None


def test_final_layer():
    layers = decoder(8, 2)
    assert final_layer(layers) is layers[-1]
    with pytest.raises(InputError, match="must be linear, not ReLU"):
        final_layer(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (5, 9), (4, 4)])
def test_pictures_are_read_one_by_one(shape):
    conv = ConvEncoder(6).double()
    x = torch.randn(2, 3, 1, *shape, dtype=torch.float64)
    features = conv(x)
    assert features.shape == (2, 3, 6)
    torch.testing.assert_close(features[1:, 2:], conv(x[1:, 2:]))


def test_colour():
    assert ConvEncoder(6, channels=3)(torch.randn(1, 2, 3, 8, 8)).shape == (1, 2, 6)


def test_standardize():
    x = torch.randn(50, 4, 3) * torch.tensor([1.0, 5.0, 0.0]) + torch.tensor([1.0, 2.0, 3.0])
    layer = Standardize(3)
    torch.testing.assert_close(layer(x), x)
    layer.learn(x.mean((0, 1)), x.std((0, 1), correction=0))
    out = layer(x)
    torch.testing.assert_close(out.mean((0, 1)), torch.zeros(3), atol=1e-5, rtol=0)
    deviation = out.std((0, 1), correction=0)
    torch.testing.assert_close(deviation, torch.tensor([1.0, 1.0, 0.0]), atol=1e-5, rtol=0)
    assert not list(layer.parameters()), "it is saved, but never trained"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_blanked_features(share):
    """A share of the features is at the mean in training; what stays keeps the sum's mean."""
    torch.manual_seed(0)
    layer = Standardize(7, dropout=share)
    x = torch.randn(40, 11, 7) + 1
    blank = layer(x) == 0
    assert abs(blank.float().mean() - share) < 4 * (share * (1 - share) / x.numel()) ** 0.5
    kept = layer(x)
    torch.testing.assert_close(kept[kept != 0], (x / (1 - share))[kept != 0])
    assert not torch.equal(layer(x), layer(x)), "others every time"
    torch.testing.assert_close(layer.eval()(x), x)
