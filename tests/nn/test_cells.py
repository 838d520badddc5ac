"""Cells are causal, resumable at any instance, and carry one state vector per set."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

from capnets.errors import InputError
from capnets.nn.cells import GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell

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


class TestRefused:
    """Before anything is computed: compiled steps would write beside their memory."""

    @pytest.mark.parametrize("kind", [*CELLS, ContextCell])
    @pytest.mark.parametrize(
        ("state", "words"),
        [
            (
                lambda cell: cell.initial_state(1),
                r"shape \(1, .*expected \(2, .*initial_state\(2\)",
            ),
            (lambda cell: cell.initial_state(5), r"shape \(5, .*expected \(2, "),
            (lambda cell: cell.initial_state(2)[:, 1:], r"expected \(2, .*sets x features"),
            (lambda cell: cell.initial_state(2)[0], "the state has shape"),
            (lambda cell: cell.initial_state(2).double(), "state is torch.float64 on cpu, but"),
            (lambda cell: cell.initial_state(2).to("meta"), "on meta, but the instances"),
        ],
    )
    def test_state(self, kind, state, words):
        cell = kind(3, 4)
        with pytest.raises(InputError, match=words):
            cell(E.float(), state(cell))

    @pytest.mark.parametrize("kind", [*CELLS, ContextCell])
    def test_features(self, kind):
        for e in (torch.zeros(2, 6, 4), torch.zeros(2, 6, 2), torch.zeros(6, 3)):
            with pytest.raises(InputError, match="sets x instances x 3"):
                kind(3, 4)(e)

    @pytest.mark.parametrize("kind", CELLS)
    @pytest.mark.parametrize("shape", [(1,), (5, 7), (12, 3), (16, 1), (4, 4, 1)])
    def test_replaced_parameters(self, kind, shape):
        """Each of them, by one that does not fit the others."""
        for name, parameter in kind(3, 4).named_parameters():
            if parameter.shape == shape:
                continue
            cell = kind(3, 4)
            *path, last = name.split(".")
            setattr(cell.get_submodule(".".join(path)), last, nn.Parameter(torch.zeros(shape)))
            with pytest.raises(InputError, match="of a cell have shapes"):
                cell(E.float())

    def test_replaced_by_another_precision(self):
        cell = RNNCell(3, 4)
        cell.weight_state = nn.Parameter(cell.weight_state.double())
        with pytest.raises(InputError, match=r"float32 on cpu and torch.float64 on cpu"):
            cell(E.float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", [*CELLS, ContextCell])
def test_a_batch_without_sets(kind, dtype):
    cell = kind(3, 4).to(dtype)
    e = torch.zeros(0, 5, 3, dtype=dtype, requires_grad=True)
    z, state = cell(e)
    assert z.shape == (0, 5, cell.out_features)
    assert state.shape == (0, cell.state_features)
    (gradient,) = torch.autograd.grad(z.sum(), e)
    assert gradient.shape == e.shape


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch, by itself
class TestTransforms:
    """`torch.func` and forward-mode derivatives agree with ordinary derivatives."""

    @pytest.fixture(autouse=True, params=[torch.float32, torch.float64], ids=str)
    def give(self, request, cell):
        self.cell = cell.to(request.param)
        self.e = E.to(request.param)
        self.close = {"rtol": 1e-4, "atol": 1e-5} if request.param == torch.float32 else {}
        self.close = self.close or {"rtol": 1e-9, "atol": 1e-9}

    def loss(self, e):
        z, state = self.cell(e)
        return z.square().sum() + state.sum()

    def gradient(self):
        e = self.e.clone().requires_grad_()
        return torch.autograd.grad(self.loss(e), e)[0]

    def test_equations(self):
        for ours, theirs in zip(
            self.cell.equations(self.e, self.cell.initial_state(2)),
            self.cell(self.e),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, **self.close)

    @pytest.mark.parametrize("transform", [grad, jacrev, jacfwd])
    def test_gradient(self, transform):
        torch.testing.assert_close(transform(self.loss)(self.e), self.gradient(), **self.close)

    def test_each_set(self):
        alone = vmap(lambda e: self.cell(e[None])[0][0])(self.e)
        torch.testing.assert_close(alone, self.cell(self.e)[0], **self.close)

    def test_gradient_of_each_set(self):
        def of_one(parameters, e):
            return functional_call(self.cell, parameters, (e[None],))[0].square().sum()

        parameters = dict(self.cell.named_parameters())
        found = vmap(grad(of_one), in_dims=(None, 0))(parameters, self.e)
        for k, e in enumerate(self.e):
            expected = torch.autograd.grad(
                self.cell(e[None])[0].square().sum(), parameters.values()
            )
            for name, value in zip(parameters, expected, strict=True):
                torch.testing.assert_close(found[name][k], value, **self.close)

    def test_forward(self):
        direction = torch.ones_like(self.e)
        _, slope = jvp(self.loss, (self.e,), (direction,))
        torch.testing.assert_close(slope, self.gradient().sum(), **self.close)
        with forward_ad.dual_level():
            value = self.loss(forward_ad.make_dual(self.e, direction))
            torch.testing.assert_close(forward_ad.unpack_dual(value).tangent, slope, **self.close)

    def test_second_derivatives(self):
        second = hessian(lambda e: self.loss(e[None]))(self.e[0, :2]).flatten(2).flatten(0, 1)
        torch.testing.assert_close(second, second.T, **self.close)
        assert second.any()
