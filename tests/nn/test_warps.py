"""Warped pictures."""

import pytest
import torch

from capnets.errors import InputError
from capnets.models import build
from capnets.nn.encoders import ConvEncoder
from capnets.nn.warps import warp
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_seed_gives_the_same_warps():
    x = torch.rand(5, 2, 9, 11)
    assert torch.equal(warp(x, seeded(1)), warp(x, seeded(1)))
    assert not torch.equal(warp(x, seeded(1)), warp(x, seeded(2)))


def test_every_picture_has_its_own_warp():
    x = torch.rand(1, 1, 12, 12).expand(6, -1, -1, -1)
    warped = warp(x, seeded(0))
    assert all(not torch.equal(warped[0], other) for other in warped[1:])


def test_channels_move_together():
    x = torch.rand(4, 1, 12, 12).expand(-1, 3, -1, -1)
    warped = warp(x, seeded(0))
    assert torch.equal(warped[:, 0], warped[:, 2])


def test_warps_are_small():
    """A blob stays within the sum of all that may move it; the mean over many warps is in place."""
    rows, columns = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    blob = torch.exp(-((rows - 18) ** 2 + (columns - 9) ** 2) / 4).expand(500, 1, -1, -1)
    warped = warp(blob, seeded(0))
    mass = warped.sum((1, 2, 3))
    row, column = ((warped[:, 0] * at).sum((1, 2)) / mass for at in (rows, columns))
    # From the centre 4.5 pixels away: turning by 12 degrees, slanting by .15, stretching by a
    # tenth, shifting by 1.4 pixels.
    assert ((row - 18).abs() < 4).all()
    assert ((column - 9).abs() < 4).all()
    assert row.std() > 0.5
    torch.testing.assert_close(row.mean(), torch.tensor(18.0), atol=0.3, rtol=0)
    torch.testing.assert_close(column.mean(), torch.tensor(9.0), atol=0.3, rtol=0)


def test_what_comes_in_over_the_edge():
    x = torch.full((20, 1, 8, 8), -0.4)
    assert (warp(x, seeded(0)) > -0.39).any()
    torch.testing.assert_close(warp(x, seeded(0), fill="border"), x)


def test_an_encoder_warps_in_training_only():
    encoder = ConvEncoder(6, warp=True)
    x = torch.randn(2, 3, 1, 28, 28)
    torch.manual_seed(0)
    first, second = encoder(x), encoder(x)
    assert not torch.allclose(first, second)
    torch.manual_seed(0)
    assert torch.equal(encoder(x), first)
    encoder.eval()
    assert torch.equal(encoder(x), encoder(x))
    encoder.warp = False
    assert torch.equal(encoder(x), encoder.train()(x))


@pytest.mark.parametrize("side", [28, 32])
def test_the_signal_keeps_its_size(side):
    """He's start weights: behind three convolutions pictures differ as much as before them."""
    torch.manual_seed(0)
    encoder = ConvEncoder(64)
    x = torch.randn(50, 1, side, side)
    places = encoder.convolutions[:5](x)  # behind a convolution, in front of its ReLU
    assert 0.5 < places.square().mean() < 4


def test_a_spec_says_so():
    assert build("c-gru", inputs="pictures", warp=True).inputs.warp
    assert not build("c-gru", inputs="pictures").inputs.warp
    with pytest.raises(InputError, match="warp needs inputs='pictures'"):
        build("c-gru", inputs="standardize", warp=True)


def test_training_with_warps_repeats_bit_by_bit():
    x = torch.randn(40, 3, 1, 8, 8, generator=seeded(0)).numpy()
    sets = Sets.from_padded(x, y=x.sum((1, 2, 3, 4)))

    def trained(*, warp: bool) -> torch.Tensor:
        model = build("c-deepset", in_features=6, hidden=4, inputs="pictures", warp=warp, seed=0)
        fit(model, sets, recipe=Recipe(epochs=2, batch_size=20), seed=1)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    first = trained(warp=True)
    torch.manual_seed(5)  # what was drawn before must not matter
    assert torch.equal(trained(warp=True), first)
    assert not torch.equal(trained(warp=False), first)
