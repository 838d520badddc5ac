"""Context cells are causal, independent of order, and equal to their equations."""

import pytest
import torch
from torch.autograd import gradcheck

from capnets.nn.context import ContextCell

E = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def cell():
    torch.manual_seed(0)
    cell = ContextCell(3, 4).double()
    cell.start(size=25)
    return cell


def slowly(cell, instances, state):
    """The equation, instance by instance."""
    rows = []
    for e in instances:
        gate = (cell.gate.weight @ e + cell.gate.bias).clamp_min(0)
        rows.append(torch.cat([e, gate * state / 2.5]))
        weights = torch.exp(cell.kind.weight @ e + cell.kind.bias)
        state = state + weights / weights.sum()
    return torch.stack(rows), state


def test_equation(cell):
    state = torch.rand(2, 4, dtype=torch.float64)
    z, after = cell(E, state)
    for i in range(2):
        expected, expected_after = slowly(cell, E[i], state[i])
        torch.testing.assert_close(z[i], expected)
        torch.testing.assert_close(after[i], expected_after)


def test_shapes(cell):
    z, state = cell(E)
    assert z.shape == (2, 6, cell.out_features) == (2, 6, 7)
    assert state.shape == (2, cell.state_features) == cell.initial_state(2).shape
    z, state = cell(E[:, :0])
    assert z.shape == (2, 0, 7)
    assert not state.any()


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_can_be_interrupted(cell, cut):
    z, state = cell(E)
    first, between = cell(E[:, :cut])
    second, after = cell(E[:, cut:], between)
    torch.testing.assert_close(torch.cat([first, second], dim=1), z)
    torch.testing.assert_close(after, state)


def test_every_instance_is_counted_once(cell):
    with torch.no_grad():  # a gate of 1 shows the counts as they are
        cell.gate.weight.zero_()
        cell.gate.bias.fill_(2.5)
    z, state = cell(E)
    counts = z[:, :, 3:].sum(2)
    torch.testing.assert_close(counts, torch.arange(6.0).double().expand(2, 6))
    torch.testing.assert_close(state.sum(1), torch.full((2,), 6.0).double())


def test_order_of_predecessors_does_not_matter(cell):
    assert not cell.ordered
    z, state = cell(E)
    order = [3, 1, 0, 2, 4, 5]
    again, after = cell(E[:, order])
    torch.testing.assert_close(again[:, 4:], z[:, 4:])
    torch.testing.assert_close(after, state)
    assert not torch.allclose(again[:, :4], z[:, order][:, :4])


def test_later_instances_do_not_matter(cell):
    changed = E.clone()
    changed[:, 4:] = torch.nan
    assert torch.equal(cell(changed)[0][:, :4], cell(E)[0][:, :4])


@pytest.mark.parametrize("size", [1, 4])
def test_gradients_are_derivatives(cell, size):
    names = dict(cell.named_parameters())
    state = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    e = E[:, :size].clone().requires_grad_()

    def function(e, state, *parameters):
        values = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(cell, values, (e, state))

    assert gradcheck(function, (e, state, *names.values()))


@pytest.mark.parametrize(("size", "unit"), [(3, 1), (10, 1), (40, 4)])
def test_counts_of_larger_sets_have_a_larger_unit(size, unit):
    cell = ContextCell(3, 4)
    cell.start(size=size)
    assert cell.unit == unit
    assert "unit" in cell.state_dict()
