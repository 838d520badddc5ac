"""Attention blocks: masks and order."""

import pytest
import torch

from capnets.models import build
from capnets.nn import kernels
from capnets.nn.attention import ISAB, MAB, PMA, SAB
from capnets.nn.backend import explain, use

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


compiled = pytest.mark.skipif(not kernels.available(), reason="numba is not installed")


def joined(tensors):
    return torch.cat([t.detach().flatten() for t in tensors])


@compiled
class TestKernel:
    """Attention compiled over the sets of a block, against its formula."""

    @pytest.mark.parametrize(
        ("sets", "queries", "keys", "padded"),
        [(1, 3, 3, False), (32, 1, 7, True), (33, 6, 3, True), (70, 5, 1, False)],
    )
    def test_equals_the_formula(self, sets, queries, keys, padded):
        block = MAB(6, 5, 8, heads=2)
        x, y = torch.randn(sets, queries, 6), torch.randn(sets, keys, 5)
        mask = torch.arange(keys) < torch.randint(1, keys + 1, (sets, 1)) if padded else None
        wanted = [x.requires_grad_(), y.requires_grad_(), *block.parameters()]
        once, twice = {}, {}
        for name in ("kernels", "native", "reference"):
            with use(name):
                out = block(x, y, mask)
                first = torch.autograd.grad(out.square().sum(), wanted, create_graph=True)
                once[name] = joined([out, *first])
                if name != "native":  # torch's fused function has no second derivative
                    total = sum(g.square().sum() for g in first)
                    twice[name] = joined(torch.autograd.grad(total, wanted))
        for found in (once, twice):
            expected = found.pop("reference")
            for one in found.values():
                assert (one - expected).norm() < 1e-5 * expected.norm()

    def test_padding_is_not_seen(self):
        pool, x = PMA(8), torch.randn(40, 5, 8)
        mask = torch.arange(5) < torch.randint(1, 6, (40, 1))
        with use("kernels"):
            garbage = x.masked_fill(~mask[..., None], 1e4)
            torch.testing.assert_close(pool(garbage, mask), pool(x, mask), rtol=0, atol=0)

    def test_nan_reaches_its_set_only(self):
        block, x = SAB(6, 8), torch.randn(40, 3, 6)
        x[3, 1, 2] = torch.nan
        with use("kernels"):
            found = block(x).isnan().flatten(1)
        assert found[3].all()
        assert not found[:3].any()
        assert not found[4:].any()

    def test_large_sets_are_left_to_torch(self):
        model = build("set-transformer", in_features=3, hidden=16)
        assert "MAB: kernels" in explain(model, torch.randn(100, 10, 3))
        for few in (torch.randn(2, 10, 3), torch.randn(20, 100, 3)):
            assert "MAB: native (torch is faster for few or large sets)" in explain(model, few)
