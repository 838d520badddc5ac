"""Muon agrees with a simple implementation of its equations."""

import pytest
import torch
from torch import nn

from capnets.models import MODELS, build
from capnets.nn.backend import use
from capnets.nn.cells import RecurrentCell
from capnets.training.muon import Muon, maps, orthogonal


def singular(x):
    return torch.linalg.svdvals(x.double())


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 64, 32), (2, 5, 40)])
def test_same_directions_of_about_the_same_length(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    y = orthogonal(x)
    assert y.shape == x.shape
    u, s, v = torch.linalg.svd(x.double(), full_matrices=False)
    # In the basis of x the result is diagonal: no direction was turned into another.
    turned = u.mT @ y.double() @ v.mT
    diagonal = torch.diagonal(turned, dim1=1, dim2=2)
    assert torch.allclose(turned, torch.diag_embed(diagonal), atol=1e-4)
    notable = s > 0.02 * s.amax(1, keepdim=True)
    assert ((diagonal > 0.5) & (diagonal < 1.3))[notable].all()


def test_a_gradient_of_zero_moves_nothing():
    assert not orthogonal(torch.zeros(1, 4, 4)).any()


def test_the_length_of_a_gradient_does_not_matter():
    x = torch.randn(1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(orthogonal(1e4 * x), orthogonal(x), atol=1e-5)


def names_of(model, parameters):
    chosen = {id(p) for p in parameters}
    return {name for name, p in model.named_parameters() if id(p) in chosen}


def test_maps_of_a_network():
    lstm = build("c-lstm", seed=0)
    stacks = maps(lstm)
    assert names_of(lstm, stacks) == {
        "encoder.0.weight", "encoder.2.weight", "encoder.4.weight",
        "cell.lstm.weight_ih_l0", "cell.lstm.weight_hh_l0",
        "decoder.0.weight", "decoder.2.weight", "decoder.4.weight",
    }  # fmt: skip
    assert stacks[lstm.cell.lstm.weight_hh_l0] == 4
    assert stacks[lstm.encoder[0].weight] == 1


class Leaky(RecurrentCell):
    """A cell nobody has heard of, with two gates stacked in raw matrices."""

    gates = 2

    def __init__(self, in_features, hidden):
        super().__init__()
        self.in_features, self.out_features, self.state_features = in_features, hidden, hidden
        self.of_input = nn.Parameter(torch.randn(2 * hidden, in_features))
        self.of_state = nn.Parameter(torch.randn(2 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(2 * hidden))

    def weights(self):
        return self.of_input, self.of_state, self.bias

    def next_state(self, e, state):
        k, n = (e @ self.of_input.T + state @ self.of_state.T + self.bias).chunk(2, dim=-1)
        return state + k.sigmoid() * (n.tanh() - state)


def test_a_new_cell_declares_its_maps():
    cell = Leaky(3, 4)
    assert maps(nn.Sequential(cell)) == {cell.of_input: 2, cell.of_state: 2}
    for p in cell.parameters():
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(0))
    before = cell.of_state.detach().clone()
    Muon(cell, lr=1.0).step()
    steps = (before - cell.of_state.detach()).chunk(2)
    expected = orthogonal(cell.of_state.grad.view(2, 4, 4))
    for step, direction in zip(steps, expected, strict=True):
        torch.testing.assert_close(step, 0.2 * 4**0.5 * direction, rtol=1e-3, atol=1e-4)
    cell.gates = 0
    assert not maps(cell)


def test_torch_modules_without_a_declaration():
    module = nn.ModuleList([nn.LSTM(3, 4), nn.RNN(3, 4), nn.Linear(3, 4), nn.Embedding(5, 4)])
    assert sorted(maps(module).values()) == [1, 1, 1, 4, 4]


def test_weights_that_pass_a_function_are_no_maps():
    potential = build("c-potential", seed=0)
    found = names_of(potential, maps(potential))
    assert found
    assert all("potential" not in name for name in found)


def slowly(weight, gradients, *, gates, rate):
    """The equations, gate by gate, with singular values instead of the iteration's factor."""
    pieces = [piece.double() for piece in weight.chunk(gates)]
    momenta = [torch.zeros_like(piece) for piece in pieces]
    for gradient in gradients:
        for k, g in enumerate(gradient.double().chunk(gates)):
            momenta[k] = 0.95 * momenta[k] + 0.05 * g
            x = 0.05 * g + 0.95 * momenta[k]
            u, s, v = torch.linalg.svd(x, full_matrices=False)
            s = s / s.square().sum().sqrt()
            for _ in range(5):
                s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
            pieces[k] = pieces[k] - rate * 0.2 * max(x.shape) ** 0.5 * u @ torch.diag(s) @ v
    return torch.cat(pieces)


@pytest.mark.parametrize(("name", "gates"), [("c-gru", 3), ("c-lstm", 4), ("c-rnn", 1)])
def test_gates_are_maps_of_their_own(name, gates):
    model = build(name, in_features=4, hidden=8, layers=2, seed=0)
    optimizer = Muon(model, lr=0.03)
    generator = torch.Generator().manual_seed(1)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    seen = {n: [] for n in before}
    for _ in range(3):
        for n, p in model.named_parameters():
            p.grad = torch.randn(p.shape, generator=generator)
            seen[n].append(p.grad.clone())
        optimizer.step()
    stacks = maps(model)
    assert set(stacks.values()) == {1, gates}
    for n, p in model.named_parameters():
        if p in stacks:
            expected = slowly(before[n], seen[n], gates=stacks[p], rate=0.03)
            assert torch.allclose(p.double(), expected, atol=1e-4), n


def test_everything_else_is_left_to_adamw():
    model, other = (build("c-gru", in_features=4, hidden=8, layers=1, seed=0) for _ in range(2))
    ours = Muon(model, lr=0.03, weight_decay=0.1)
    torchs = torch.optim.AdamW(other.parameters(), lr=0.03, weight_decay=0.1, fused=True)
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            p.grad = torch.randn(p.shape, generator=generator)
            q.grad = p.grad.clone()
        ours.step()
        torchs.step()
    stacks = maps(model)
    pairs = list(zip(model.parameters(), other.parameters(), strict=True))
    assert sum(p not in stacks for p, _ in pairs) > 3
    for p, q in pairs:
        assert torch.equal(p, q) == (p not in stacks)


def test_weights_decay():
    layer = nn.Linear(4, 4, bias=False)
    before = layer.weight.detach().clone()
    layer.weight.grad = torch.zeros(4, 4)
    Muon(layer, lr=0.5, weight_decay=0.1).step()
    assert torch.allclose(layer.weight, 0.95 * before)


def test_what_has_no_gradient_stays():
    model = build("c-gru", seed=0)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    Muon(model, lr=0.1).step()
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def test_a_network_without_maps():
    layer = nn.Linear(1, 1)
    optimizer = Muon(layer, lr=0.1)
    layer(torch.ones(1, 1)).sum().backward()
    before = layer.weight.item()
    optimizer.step()
    assert layer.weight.item() != before


@pytest.mark.parametrize("name", MODELS)
def test_every_network_learns(name):
    """Forty steps on one batch lower its error."""
    torch.manual_seed(0)
    model = build(name, in_features=6, hidden=8, layers=1, seed=0)
    if not model.smooth:
        pytest.skip("trees are grown before the first step")
    optimizer = Muon(model, lr=1e-2)
    x = torch.randn(64, 5, 6)
    y = x[:, :, :1].abs().sum(1)
    errors = []
    for _ in range(40):
        error = (model(x) - y).square().mean()
        errors.append(error.item())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    assert errors[-1] < 0.7 * errors[0]


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 5, 9), (2, 40, 6), (10, 64, 64)], ids=str)
def test_kernel_and_native(shape, one_thread):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    before = x.clone()
    compiled = orthogonal(x)
    with use("native"):
        torch.testing.assert_close(compiled, orthogonal(x), rtol=1e-3, atol=1e-4)
    assert torch.equal(x, before)
