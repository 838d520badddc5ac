"""Encoder, cell and decoder as one function: the same numbers, and the same derivatives."""

import copy

import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.models import build
from capnets.nn import fused
from capnets.nn.cells import GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.encoders import mlp
from capnets.nn.fused import through
from capnets.nn.layers import MOST

pytestmark = pytest.mark.usefixtures("one_thread")

CELLS = [RNNCell, GRUCell, LSTMCell, ContextCell]


def modules(cell=ContextCell, *, inputs=5, features=6, kinds=7, hidden=(9, 8), outputs=2):
    torch.manual_seed(0)
    cell = cell(features, kinds)
    cell.start(size=25)
    return mlp(inputs, *hidden, features), cell, mlp(cell.out_features, *hidden, outputs)


def instances(sets, size, inputs=5):
    return torch.randn(sets, size, inputs, generator=torch.Generator().manual_seed(sets + size))


def exactly(x, encoder, cell, decoder=None):
    """The same with twice as many digits, part by part, by torch."""
    encoder, cell, decoder = copy.deepcopy((encoder, cell, decoder))
    z, _ = cell.double()(encoder.double()(x.double()))
    return z if decoder is None else decoder.double()(z)


def is_fused(y):
    """Whether the function right below the turning of steps is the one in question."""
    ((below, _), *_) = y.grad_fn.next_functions
    return type(below).__name__ == "_FusedBackward"


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("sets", "size"), [(1, 1), (1, 200), (3, 10), (63, 1), (64, 2), (65, 3), (150, 2), (300, 1)]
)
def test_numbers_are_those_of_the_parts(cell, sets, size):
    x, parts = instances(sets, size), modules(cell)
    y = through(x, *parts)
    assert is_fused(y)
    torch.testing.assert_close(y.double(), exactly(x, *parts), rtol=1e-4, atol=1e-5)
    states = through(x, *parts[:2])
    torch.testing.assert_close(states.double(), exactly(x, *parts[:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (3,), (64, 64), (17, 33, 5, 40)], ids=len)
@pytest.mark.parametrize("outputs", [1, 3])
def test_any_number_of_layers(hidden, outputs):
    x, parts = instances(30, 10), modules(hidden=hidden, outputs=outputs)
    torch.testing.assert_close(
        through(x, *parts).double(), exactly(x, *parts), rtol=1e-4, atol=1e-5
    )


def derivatives(y, weights, inputs, **options):
    return torch.autograd.grad((y * weights).sum(), inputs, **options)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("sets", "size"), [(1, 1), (1, 150), (3, 10), (65, 3), (200, 4)])
def test_derivatives(cell, sets, size):
    """Of every parameter and every instance, against twice as many digits."""
    x, parts = instances(sets, size).requires_grad_(), modules(cell, kinds=33)
    double = [copy.deepcopy(part).double() for part in parts]
    y = through(x, *parts)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    inputs = [x, *(p for part in parts for p in part.parameters())]
    found = derivatives(y, weights, inputs)
    z, _ = double[1](double[0](x.double()))
    expected = derivatives(
        double[2](z), weights.double(), [x, *(p for part in double for p in part.parameters())]
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).norm() <= 1e-5 * theirs.norm()


def test_instances_without_derivatives():
    x, parts = instances(4, 5), modules()
    through(x, *parts).sum().backward()
    assert x.grad is None
    assert all(p.grad.isfinite().all() for part in parts for p in part.parameters())


def test_frozen_parameters():
    x, (encoder, cell, decoder) = instances(4, 5), modules()
    encoder.requires_grad_(False)
    through(x, encoder, cell, decoder).sum().backward()
    assert all(p.grad is None for p in encoder.parameters())
    assert all(p.grad.any() for p in decoder.parameters())


@pytest.mark.parametrize("cell", CELLS)
def test_the_same_bits_where_nothing_is_differentiated(cell):
    x, parts = instances(50, 10), modules(cell, hidden=(64, 64))
    with torch.no_grad():
        assert torch.equal(through(x, *parts), through(x, *parts))
        without = through(x, *parts)
    assert torch.equal(without, through(x, *parts).detach())


@pytest.mark.parametrize("cell", CELLS)
def test_nan_stays_nan(cell):
    """Not a number must not look like a closed gate, and must not reach other sets."""
    x, parts = instances(70, 4), modules(cell)
    x[1, 2, 0] = torch.nan
    y = through(x, *parts)
    assert y[1, 2:].isnan().all()
    y[1, 2:] = 0
    assert y.isfinite().all()


class TestTwice:
    def test_backward(self):
        """What was kept is gone after the first time; the second one computes it again."""
        x, parts = instances(3, 4).requires_grad_(), modules()
        y = through(x, *parts)
        once, again = (derivatives(y, y.detach(), [x], retain_graph=True) for _ in range(2))
        torch.testing.assert_close(once, again)

    @pytest.mark.parametrize("cell", CELLS)
    def test_second_derivatives(self, cell):
        x, parts = instances(3, 4).requires_grad_(), modules(cell)

        def twice(y):
            (gradient,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), x)[0]

        ours = twice(through(x, *parts))
        encoder, cell, decoder = (copy.deepcopy(part).double() for part in parts)
        with fused.derivatives.by_torch():
            z, _ = cell(encoder(x.double()))
            theirs = twice(decoder(z))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_parameters_changed_before_the_way_back():
    x, parts = instances(3, 4), modules()
    y = through(x, *parts)
    with torch.no_grad():
        parts[0][0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


class TestWhere:
    """One function is used where it is the quicker way, and can do what is asked of it."""

    def is_fused(self, x=None, parts=None):
        return is_fused(through(instances(2, 3) if x is None else x, *(parts or modules())))

    def test_here(self):
        assert self.is_fused()

    def test_not_for_many_instances_on_several_threads(self):
        few, many = instances(2, fused.MOST // 2), instances(2, fused.MOST // 2 + 1)
        assert self.is_fused(few)
        assert self.is_fused(many)
        torch.set_num_threads(2)
        assert self.is_fused(few)
        assert not self.is_fused(many)

    def test_not_in_double_precision(self):
        assert not self.is_fused(instances(2, 3).double(), [p.double() for p in modules()])

    def test_not_when_derivatives_are_left_to_torch(self):
        with fused.derivatives.by_torch():
            assert not self.is_fused()

    def test_not_with_large_layers(self):
        assert not self.is_fused(parts=modules(hidden=(MOST // 5 + 1,)))

    @pytest.mark.parametrize("layer", [nn.Tanh(), nn.Dropout(0.5)], ids=str)
    def test_not_with_other_layers(self, layer):
        _, cell, decoder = modules()
        assert not self.is_fused(parts=(nn.Sequential(nn.Linear(5, 6), layer), cell, decoder))
        between = nn.Sequential(nn.Linear(5, 9), layer, nn.Linear(9, 6))
        assert not self.is_fused(parts=(between, cell, decoder))

    def test_not_without_a_bias(self):
        _, cell, decoder = modules()
        assert not self.is_fused(parts=(nn.Sequential(nn.Linear(5, 6, bias=False)), cell, decoder))

    @pytest.mark.parametrize("cell", CELLS)
    def test_not_when_somebody_listens(self, cell):
        encoder, cell, decoder = parts = modules(cell)
        for module in (encoder, encoder[1], cell, decoder[2]):
            heard = []
            handle = module.register_forward_hook(lambda *_, heard=heard: heard.append(1))
            assert not self.is_fused(parts=parts)
            assert heard == [1]
            handle.remove()
            assert self.is_fused(parts=parts)

    def test_not_inside_transforms(self):
        x, parts = instances(4, 3), modules()
        each = torch.func.vmap(lambda one: through(one[None], *parts)[0])(x)
        torch.testing.assert_close(each, through(x, *parts))

    def test_not_for_nothing(self):
        assert through(instances(2, 0), *modules()).shape == (2, 0, 2)
        assert through(instances(0, 3), *modules()).shape == (0, 3, 2)

    @pytest.mark.parametrize("name", ["c-rnn", "c-lstm", "c-gru", "c-deepset", "rnn", "lstm"])
    def test_the_networks_of_this_project(self, name, monkeypatch):
        model, x = build(name, in_features=5, seed=0), instances(20, 10)
        used = model(x)
        monkeypatch.setattr(fused, "may_be_fused", lambda x: False)
        torch.testing.assert_close(used, model(x), rtol=1e-4, atol=1e-5)


class TestWhatDoesNotFit:
    """Compiled loops would read and write beside their memory; torch says what is wrong."""

    @pytest.mark.parametrize("cell", CELLS)
    def test_features(self, cell):
        encoder, _, decoder = modules(cell)
        _, other, _ = modules(cell, features=7)
        with pytest.raises(InputError, match="this cell was built for 7"):
            through(instances(2, 3), encoder, other, decoder)

    @pytest.mark.parametrize("cell", CELLS)
    def test_states(self, cell):
        encoder, cell, _ = modules(cell)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            through(instances(2, 3), encoder, cell, mlp(cell.out_features + 1, 1))

    def test_instances(self):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            through(instances(2, 3, inputs=4), *modules())

    @pytest.mark.parametrize("name", ["encoder", "kind", "gate"])
    def test_a_bias_that_was_replaced(self, name):
        encoder, cell, decoder = modules()
        layer = encoder[0] if name == "encoder" else getattr(cell, name)
        layer.bias = nn.Parameter(torch.zeros(len(layer.bias) + 1))
        with pytest.raises(RuntimeError, match=r"must match|expand"):
            through(instances(2, 3), encoder, cell, decoder)

    def test_parameters_of_a_recurrence_that_were_replaced(self):
        encoder, cell, decoder = modules(RNNCell)
        cell.bias = nn.Parameter(torch.zeros(3))
        with pytest.raises(InputError, match="states and parameters of a cell have shapes"):
            through(instances(2, 3), encoder, cell, decoder)
