"""Attention blocks: masks and order."""

import pytest
import torch

from capnets.nn.attention import ISAB, MAB, PMA, SAB

X = torch.randn(2, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True] * 5, [True, True, True, False, False]])


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("block", [SAB, ISAB])
def test_blocks_move_with_the_order(block):
    layer = block(6, 8).double()
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(layer(X[:, order]), layer(X)[:, order])


def test_pooling_does_not_see_the_order():
    pool = PMA(6, seeds=3, heads=2).double()
    assert pool(X).shape == (2, 3, 6)
    torch.testing.assert_close(pool(X.flip(1)), pool(X))


@pytest.mark.parametrize("block", [lambda: SAB(6, 8), lambda: ISAB(6, 8), lambda: PMA(6, heads=2)])
def test_padding_is_not_seen(block):
    layer = block().double()
    garbage = X.masked_fill(~MASK[..., None], 1e4)
    out = layer(garbage, MASK)
    alone = layer(X[1:, :3])
    torch.testing.assert_close(out[1:, : alone.shape[1]], alone)
    torch.testing.assert_close(out[:1], layer(X[:1]))


def test_one_key_gets_all_the_attention():
    block = MAB(6, 6, 8).double()
    q, v = block.query(X), block.value(X[:, :1])
    h = q + v
    torch.testing.assert_close(block(X, X[:, :1]), h + torch.relu(block.output(h)))


def test_heads_are_separate():
    """With the value projection of one head at 0, only that head's part of the output changes."""
    block = MAB(6, 6, 8, heads=2).double()
    with torch.no_grad():
        block.output.weight.zero_()
        block.output.bias.zero_()
        before = block(X, X)
        block.value.weight[:4] = 0
        block.value.bias[:4] = 0
        after = block(X, X)
    assert not torch.allclose(before[..., :4], after[..., :4])
    torch.testing.assert_close(before[..., 4:], after[..., 4:])
