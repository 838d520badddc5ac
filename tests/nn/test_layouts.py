"""Kernels read tensors of every memory layout and fill all memory they return."""

import copy

import numpy as np
import pytest
import torch

from capnets.nn.backend import encode_scan_decode
from capnets.nn.cells import GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.encoders import mlp
from capnets.nn.kernels import kernel
from capnets.training.muon import Muon

pytestmark = pytest.mark.usefixtures("one_thread")

RECURRENT = [RNNCell, GRUCell, LSTMCell]


def column_major(t):
    return t.mT.contiguous().mT if t.ndim > 1 else strided(t)


def strided(t):
    """Return the same numbers as every second entry of a larger tensor."""
    wide = torch.full((*t.shape[:-1], 2 * t.shape[-1]), torch.nan, dtype=t.dtype)
    wide[..., ::2] = t
    return wide[..., ::2]


def offset(t):
    """Return the same numbers as the middle of a larger tensor."""
    return torch.nn.functional.pad(t, (1, 2), value=torch.nan)[..., 1:-2]


def expanded(t):
    """Return the first row for every row, stored once."""
    return t[:1].expand_as(t)


def permuted(t):
    """Return the same numbers with the first axis varying fastest."""
    axes = list(range(t.ndim))[::-1]
    return t.permute(axes).contiguous().permute(axes)


LAYOUTS = [column_major, strided, offset, expanded, permuted]


@pytest.fixture
def poisoned(monkeypatch):
    """Fill new memory with NaN: entries that no kernel writes become visible."""

    def empty(*shape):
        return np.full(shape, np.nan, np.float32)

    monkeypatch.setattr(kernel, "empty", empty)


def network(kind, sets=5, size=4):
    torch.manual_seed(0)
    cell = kind(6, 7)
    cell.start(size=25)
    modules = mlp(5, 9, 6), cell, mlp(cell.out_features, 8, 2)
    return modules, torch.randn(sets, size, 5)


def gradients(outputs, inputs):
    """Differentiate a sum in which every output has its own weight."""
    total = 0
    for y in outputs:
        weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
        total = total + (y * weights.to(y.dtype)).sum()
    return torch.autograd.grad(total, inputs, allow_unused=True)


def close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [*RECURRENT, ContextCell])
@pytest.mark.parametrize("sets", [1, 5, 70])
@pytest.mark.usefixtures("poisoned")
def test_whole_network(kind, layout, sets):
    modules, x = network(kind, sets)
    for module in modules:
        for p in module.parameters():
            p.data = layout(p.data)
    x = layout(x).requires_grad_()
    double = copy.deepcopy(modules)
    inputs = [x, *(p for m in modules for p in m.parameters())]
    y = encode_scan_decode(x, *modules)
    exact_x = x.detach().double().requires_grad_()
    z, _ = double[1].double()(double[0].double()(exact_x))
    exact = double[2].double()(z)
    close([y], [exact])
    close(
        gradients([y], inputs),
        gradients([exact], [exact_x, *(p for m in double for p in m.parameters())]),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.usefixtures("poisoned")
def test_cell_alone(kind, layout):
    """Features, states and weights of any layout, and gradients of any layout that arrive."""
    torch.manual_seed(0)
    cell, double = kind(3, 4), kind(3, 4).double()
    double.load_state_dict(cell.state_dict())
    e, state = torch.randn(6, 5, 3), torch.randn(6, cell.state_features)
    for p, q in zip(cell.parameters(), double.parameters(), strict=True):
        p.data = layout(p.data)
        q.data = p.data.double()
    e, state = layout(e).requires_grad_(), layout(state).requires_grad_()
    exact = [t.detach().double().requires_grad_() for t in (e, state)]
    ours, theirs = cell(e, state), double(*exact)
    close(ours, theirs)
    arriving = [
        layout(torch.randn(t.shape, generator=torch.Generator().manual_seed(2))) for t in ours
    ]
    close(
        torch.autograd.grad(ours, [e, state, *cell.parameters()], arriving),
        torch.autograd.grad(theirs, [*exact, *double.parameters()], [t.double() for t in arriving]),
    )


@pytest.mark.parametrize("layout", [column_major, strided, offset, permuted])
@pytest.mark.parametrize("kind", [*RECURRENT, ContextCell])
def test_muon_steps(kind, layout):
    """A step changes the same numbers by the same amounts, however they are stored."""
    steps = []
    for change in (lambda t: t, layout):
        modules, x = network(kind)
        whole = torch.nn.ModuleList(modules)
        for p in whole.parameters():
            p.data = change(p.data)
        optimizer = Muon(whole, lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            encode_scan_decode(x, *modules).square().sum().backward()
            optimizer.step()
        steps.append([p.detach().contiguous() for p in whole.parameters()])
    close(*steps)


def test_weights_assigned_from_a_file_of_columns():
    """`load_state_dict(assign=True)` keeps the layout of the tensors it is given."""
    modules, x = network(GRUCell)
    expected = gradients([encode_scan_decode(x, *modules)], [*modules[1].parameters()])
    state = {name: column_major(p.detach()) for name, p in modules[1].state_dict().items()}
    modules[1].load_state_dict(state, assign=True)
    assert not modules[1].gru.weight_hh_l0.is_contiguous()
    close(gradients([encode_scan_decode(x, *modules)], [*modules[1].parameters()]), expected)
