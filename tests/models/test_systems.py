"""Networks of other authors: closed forms, slow references, and operators of other libraries."""

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.export.onnx import graphs
from capnets.models import build, prefixes
from capnets.nn.random import draw_from

SIZES = (3, 1, 5, 2)


def network(name, **settings):
    settings = {"in_features": 4, "hidden": 6, "layers": 2, "seed": 1} | settings
    return build(name, **settings).double().eval()


def ragged(features=4):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(SIZES), max(SIZES), features, generator=generator, dtype=torch.float64)
    return x, torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]


def flat(h, mask):
    """Instances below each other and the number of their set, as torch-geometric has them."""
    return h[mask], torch.arange(len(h)).repeat_interleave(mask.sum(1))


@torch.no_grad()
@pytest.mark.parametrize("name", ["pointnet", "gated-attention", "set2set"])
def test_operators_of_torch_geometric(name):
    aggr = pytest.importorskip("torch_geometric.nn.aggr")
    model = network(name)
    x, mask = ragged()
    h = model.encoder(x)
    if name == "pointnet":
        other = aggr.MaxAggregation()
    elif name == "gated-attention":
        other = aggr.AttentionalAggregation(gate_nn=model.scores)
    else:
        other = aggr.Set2Set(6, processing_steps=3).double()
        other.lstm.load_state_dict(model.cell.lstm.state_dict())
    rows, owner = flat(h, mask)
    found = other(rows, owner, dim_size=len(x))
    torch.testing.assert_close(model.pool(h, mask), found)


@torch.no_grad()
def test_gated_attention_of_torchmil():
    pool = pytest.importorskip("torchmil.nn").AttentionPool(6, 6, gated=True).double()
    model = network("gated-attention")
    x, mask = ragged()
    h = model.encoder(x)
    names = {"units": "fc1", "gate": "fc_gated", "output": "fc2"}
    theirs = dict(pool.named_modules())
    for ours, other in names.items():
        layer = theirs[other]
        inner = next(m for m in layer.modules() if isinstance(m, nn.Linear))
        inner.load_state_dict(getattr(model.scores, ours).state_dict())
    torch.testing.assert_close(model.pool(h, mask), pool(h, mask.double()))


@torch.no_grad()
@pytest.mark.parametrize("name", ["pointnet", "gated-attention", "janossy-pairs"])
def test_prefixes_in_one_pass(name):
    model = network(name)
    x, _ = ragged()
    found = prefixes.prefix_by_prefix(model.predict, x)
    torch.testing.assert_close(model.predict_prefixes(x), found, rtol=1e-10, atol=1e-12)


@torch.no_grad()
def test_fspool_by_interpolation():
    model = network("fspool")
    x, mask = ragged()
    h = model.encoder(x)
    found = model.pool(h, mask)
    grid = np.linspace(0, 1, len(model.knots))
    for k, size in enumerate(SIZES):
        ranks = np.linspace(0, 1, size)
        for d in range(6):
            weights = np.interp(ranks, grid, model.knots[:, d].numpy())
            expected = weights @ np.sort(h[k, :size, d].numpy())[::-1]
            assert found[k, d] == pytest.approx(expected)


@torch.no_grad()
def test_janossy_pairs_by_loops():
    model = network("janossy-pairs")
    x, mask = ragged()
    h = model.encoder(x)
    found = model.pool(h, mask)
    for k, size in enumerate(SIZES):
        pairs = list(permutations(h[k, :size], 2)) or [(h[k, 0], torch.zeros_like(h[k, 0]))]
        each = [torch.relu(model.first(a) + model.second(b)) for a, b in pairs]
        torch.testing.assert_close(found[k], torch.stack(each).mean(0))


@torch.no_grad()
def test_janossy_orders():
    """In training one random order per set; otherwise the mean over eight fixed ones."""
    model = network("janossy-orders")
    x = torch.randn(1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = model.encoder(x)
    every = torch.stack([model.cell(h[:, list(p)])[0][0, -1] for p in permutations(range(4))])
    model.train()
    with draw_from(3):
        drawn = torch.stack([model.pool(h, None)[0] for _ in range(40)])
    nearest = (drawn[:, None] - every).abs().amax(2)
    assert nearest.amin(1).max() < 1e-12
    assert len(set(nearest.argmin(1).tolist())) > 10
    model.eval()
    pooled = model.pool(h, None)[0]
    assert (pooled > every.amin(0) - 1e-12).all()
    assert (pooled < every.amax(0) + 1e-12).all()
    assert not torch.allclose(pooled, every.mean(0))


def capacity(model, weights, feature):
    """The capacity of every subset of instances, as a table."""
    subsets = [s for n in range(len(weights) + 1) for s in combinations(range(len(weights)), n)]
    table = {}
    for subset in subsets:
        measure = weights[list(subset)].sum() if len(subset) < len(weights) else torch.tensor(1.0)
        full = measure.double().expand(1, 1, model.hidden)
        table[frozenset(subset)] = float(model.distorted(full)[0, 0, feature])
    return table


def chain(values, order, table):
    """Sum the values along a chain of subsets, each weighted by the rise of the capacity."""
    before, total = frozenset(), 0.0
    for i in order:
        total += values[i] * (table[before | {i}] - table[before])
        before |= {i}
    return total


@torch.no_grad()
@pytest.mark.parametrize("shape", ["drawn", "convex", "concave"])
def test_choquet_by_chains(shape):
    """The integral follows the chain that sorts: the least for a convex capacity."""
    model = network("choquet")
    if shape != "drawn":
        rising = torch.linspace(-2, 2, len(model.rises), dtype=torch.float64)[:, None]
        model.rises.copy_((rising if shape == "convex" else -rising).expand_as(model.rises))
    x, mask = ragged()
    h = model.encoder(x)
    found = model.pool(h, mask)
    for k, size in enumerate(SIZES):
        weights = model.scores(h[k, :size]).squeeze(-1).softmax(0)
        for d in range(2):
            values, table = h[k, :size, d].tolist(), capacity(model, weights, d)
            assert table[frozenset()] == 0
            assert table[frozenset(range(size))] == pytest.approx(1)
            sorting = sorted(range(size), key=lambda i: -values[i])
            assert found[k, d] == pytest.approx(chain(values, sorting, table))
            every = [chain(values, order, table) for order in permutations(range(size))]
            if shape != "drawn":
                bound = min(every) if shape == "convex" else max(every)
                assert found[k, d] == pytest.approx(bound)


@torch.no_grad()
@pytest.mark.parametrize(("rise", "expected"), [(0, "amax"), (-1, "amin"), (None, "mean")])
def test_choquet_special_cases(rise, expected):
    model = network("choquet")
    model.scores.weight.zero_()
    model.rises.fill_(-50.0)
    model.rises[slice(1, -1) if rise is None else rise] = 50.0
    x, mask = ragged()
    h = model.encoder(x)
    found = model.pool(h, mask)
    for k, size in enumerate(SIZES):
        torch.testing.assert_close(found[k], getattr(h[k, :size], expected)(0))


@torch.no_grad()
def test_additive_mil_contributions():
    """They sum to the prediction, but change when instances follow: no added values."""
    model = network("additive-mil")
    model.unit.fill_(2.5)
    x, mask = ragged()
    found = model.contributions(x, mask)
    torch.testing.assert_close(found.sum(1), model(x, mask))
    assert not found[~mask].any()
    full = model.contributions(x)
    assert not torch.allclose(model.contributions(x[:, :3]), full[:, :3])


@torch.no_grad()
def test_instance_lstm_without_its_skip_connection_is_c_lstm():
    model, other = network("instance-lstm"), network("c-lstm", activation="identity")
    model.decoder[0].weight[:, 6:] = 0
    other.encoder.load_state_dict(model.encoder.state_dict())
    other.cell.load_state_dict(model.cell.state_dict())
    weights = model.decoder.state_dict()
    other.decoder.load_state_dict(weights | {"0.weight": weights["0.weight"][:, :6]})
    x, mask = ragged()
    torch.testing.assert_close(model.added_values(x, mask), other.added_values(x, mask))


@torch.no_grad()
def test_learned_order_sorts_by_its_score():
    """Rows and columns sum to 1; with scores that are far apart, nothing is mixed."""
    model = network("c-order")
    x, mask = ragged()
    soft = model.permutation(x, mask)
    assert (soft.sum(1) - 1).abs().max() < 1e-12
    assert (soft.sum(2) - 1).abs().max() < 0.05, "ten iterations"
    model.scores = nn.Linear(4, 1).double()
    model.scores.weight.copy_(torch.eye(4)[:1])
    for k, size in enumerate(SIZES):
        order = torch.randperm(size, generator=torch.Generator().manual_seed(k))
        x[k, :size, 0] = order.double()
        hard = model.permutation(x[k : k + 1, :size], None)[0]
        torch.testing.assert_close(
            hard[order.argsort()], torch.eye(size).double(), rtol=0, atol=0.05
        )
        torch.testing.assert_close(model.permutation(x, mask)[k, :size, :size], hard)


@torch.no_grad()
def test_message_passing_by_loops():
    model = network("message-passing")
    model.diffusion.copy_(torch.tensor([-1.0, 2.0]))
    x, mask = ragged()
    encoded = model.encoder(x)
    found = model.pool(encoded, mask)
    for k, size in enumerate(SIZES):
        h = encoded[k, :size]
        kernel = model.kernel(h)
        graph = (-(kernel[:, None] - kernel[None]).square().sum(2)).exp()
        graph /= graph.sum(1, keepdim=True)
        for block, strength in zip(model.blocks, model.diffusion.exp(), strict=True):
            h = (h + strength * torch.relu(block(graph @ h))) / (1 + strength)
        torch.testing.assert_close(found[k], h.sum(0))


@torch.no_grad()
def test_memory_is_read_by_scaled_dot_products():
    model = network("memory")
    x, _ = ragged()
    h = model.encoder(x)
    found = model.pool(h, None)
    for query, key, content in zip(model.queries, model.keys, model.contents, strict=True):
        read = nn.functional.scaled_dot_product_attention(query(h), key(h), content(h))
        h = torch.relu(h + read)
    torch.testing.assert_close(found, h.mean(1))


def test_export_is_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"^there is no ONNX graph for a network of type Set2Set"):
        graphs(network("set2set"))
