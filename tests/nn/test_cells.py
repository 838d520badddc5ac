"""Cells read causally, can be interrupted anywhere, and remember one vector per set."""

import pytest
import torch
from torch import nn

from capnets.nn.cells import GRUCell, LSTMCell, RNNCell

CELLS = [RNNCell, GRUCell, LSTMCell]


@pytest.fixture(params=CELLS, ids=lambda kind: kind.__name__)
def cell(request):
    torch.manual_seed(0)
    return request.param(3, 4).double()


E = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_shapes(cell):
    z, state = cell(E)
    assert z.shape == (2, 6, cell.out_features)
    assert state.shape == (2, cell.state_features) == cell.initial_state(2).shape
    assert cell.in_features == 3
    torch.testing.assert_close(z[:, -1], state[:, : cell.out_features])


def test_begins_with_nothing(cell):
    z, state = cell(E)
    again, after = cell(E, cell.initial_state(2))
    assert not cell.initial_state(2).any()
    torch.testing.assert_close(again, z)
    torch.testing.assert_close(after, state)


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_can_be_interrupted(cell, cut):
    z, state = cell(E)
    first, between = cell(E[:, :cut])
    second, after = cell(E[:, cut:], between)
    torch.testing.assert_close(torch.cat([first, second], dim=1), z)
    torch.testing.assert_close(after, state)


def test_gradient_flows_through_the_state(cell):
    e = E.clone().requires_grad_()
    _, between = cell(e[:, :3])
    z, _ = cell(e[:, 3:].detach(), between)
    (gradient,) = torch.autograd.grad(z.sum(), e)
    assert gradient[:, :3].any()


def test_gradients_are_derivatives(cell):
    """Against differences of the outputs themselves."""
    state = torch.randn(2, cell.state_features, dtype=torch.float64).requires_grad_()
    e = E[:, :3].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda e, state: cell(e, state), (e, state))


@pytest.mark.parametrize(
    ("kind", "twin"), [(GRUCell, nn.GRU), (LSTMCell, nn.LSTM)], ids=["GRU", "LSTM"]
)
def test_weights_can_be_exchanged_with_torch(kind, twin):
    cell, module = kind(3, 4), twin(3, 4, batch_first=True)
    weights = {name.split(".")[-1]: p for name, p in cell.named_parameters()}
    module.load_state_dict(weights)
    torch.testing.assert_close(cell(E.float())[0], module(E.float())[0])


def test_rnn_is_that_of_torch_with_one_bias():
    cell = RNNCell(3, 4)
    module = nn.RNN(3, 4, batch_first=True)
    with torch.no_grad():
        module.weight_ih_l0.copy_(cell.weight_input)
        module.weight_hh_l0.copy_(cell.weight_state)
        module.bias_ih_l0.copy_(cell.bias)
        module.bias_hh_l0.zero_()
    torch.testing.assert_close(cell(E.float())[0], module(E.float())[0])
    assert sum(p.numel() for p in RNNCell(32, 32).parameters()) == 2080
