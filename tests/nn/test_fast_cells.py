"""Derivatives written out by hand are those of torch, gate for gate."""

import inspect
from contextlib import nullcontext

import pytest
import torch
from torch.autograd import gradcheck

from capnets.nn import recurrence
from capnets.nn.cells import FEW, GRUCell, LSTMCell, RNNCell
from capnets.nn.derivatives import by_torch
from capnets.nn.kernels import by_operations

CELLS = [RNNCell, GRUCell, LSTMCell]
HIDDEN = 5


def draw(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def gradients_of(outputs, inputs):
    """Every output with its own weights, so that no gradient can hide behind another."""
    weights = [draw(*z.shape, dtype=z.dtype, seed=9).detach() for z in outputs]
    return torch.autograd.grad(
        sum((z * w).sum() for z, w in zip(outputs, weights, strict=True)), inputs
    )


@pytest.mark.parametrize("steps", [1, 4])
class TestAgainstDifferences:
    """`gradcheck` compares every single derivative with a difference quotient."""

    def test_rnn(self, steps):
        shapes = (steps, 3, 2), (3, HIDDEN), (HIDDEN, 2), (HIDDEN, HIDDEN), (HIDDEN,)
        assert gradcheck(recurrence.rnn, [draw(*shape) for shape in shapes])

    def test_gru(self, steps):
        rows = 3 * HIDDEN
        shapes = (steps, 3, 2), (3, HIDDEN), (rows, 2), (rows, HIDDEN), (rows,), (rows,)
        assert gradcheck(recurrence.gru, [draw(*s, seed=i) for i, s in enumerate(shapes)])

    def test_lstm(self, steps):
        rows = 4 * HIDDEN
        state = (3, HIDDEN)
        shapes = (steps, 3, 2), state, state, (rows, 2), (rows, HIDDEN), (rows,), (rows,)
        assert gradcheck(recurrence.lstm, [draw(*s, seed=i) for i, s in enumerate(shapes)])


@pytest.fixture(params=["compiled", "operations"])
def both_ways(request):
    """Both ways to compute with float32."""
    with by_operations() if request.param == "operations" else nullcontext():
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [1, 2, 10])
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("both_ways")
def test_equals_the_kernels_of_torch(kind, size, dtype):
    torch.manual_seed(size)
    cell = kind(4, HIDDEN).to(dtype)
    e = draw(3, size, 4, dtype=dtype)
    state = draw(3, cell.state_features, dtype=dtype)
    inputs = [e, state, *cell.parameters()]
    ours, theirs = cell(e, state), cell.native(e, state)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    for a, b in zip(gradients_of(ours, inputs), gradients_of(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("sets", [1, FEW - 1, FEW])
@pytest.mark.parametrize("kind", CELLS)
def test_the_same_whether_differentiated_or_not(kind, sets):
    cell, e = kind(4, HIDDEN), draw(sets, 7, 4, dtype=torch.float32)
    state = draw(sets, cell.state_features, dtype=torch.float32)
    with torch.no_grad():
        plain = cell(e, state)
    torch.testing.assert_close(plain, cell(e, state))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("both_ways")
def test_saturated_gates_stay_finite(kind):
    cell = kind(2, 3)
    e = (1e4 * draw(2, 5, 2, dtype=torch.float32)).detach().requires_grad_()
    ours, theirs = cell(e), cell.native(e, cell.initial_state(2))
    torch.testing.assert_close(ours, theirs)
    for gradient in gradients_of(ours, [e, *cell.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("use", ["last state only", "one set only", "state only"])
@pytest.mark.usefixtures("both_ways")
def test_whatever_part_is_used(kind, use):
    """The gradient that arrives may be zero, expanded or laid out in another order."""
    cell = kind(2, 3)
    e = draw(3, 4, 2, dtype=torch.float32)

    def used(outputs):
        z, state = outputs
        return {"last state only": z[:, -1], "one set only": z[1], "state only": state}[use].sum()

    ours = torch.autograd.grad(used(cell(e)), [e, *cell.parameters()])
    theirs = torch.autograd.grad(
        used(cell.native(e, cell.initial_state(3))), [e, *cell.parameters()]
    )
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", CELLS)
def test_no_instances(kind):
    cell = kind(2, 3)
    z, state = cell(torch.empty(4, 0, 2))
    assert z.shape == (4, 0, cell.out_features)
    assert torch.equal(state, cell.initial_state(4))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("both_ways")
def test_same_bits_again(kind):
    cell = kind(4, 8)
    e = draw(6, 7, 4, dtype=torch.float32)
    first, second = (gradients_of(cell(e), [e, *cell.parameters()]) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("both_ways")
def test_inputs_stay_as_they_were(kind):
    cell = kind(4, 8)
    e, state = draw(3, 5, 4, dtype=torch.float32), draw(3, cell.state_features, dtype=torch.float32)
    before = [t.detach().clone() for t in (e, state, *cell.parameters())]
    gradients_of(cell(e, state), [e, state])
    assert all(
        torch.equal(a, b) for a, b in zip(before, (e, state, *cell.parameters()), strict=True)
    )


class TestCompiled:
    """Compiled loops are used where they are the quicker way, and only if they are there."""

    def test_where(self, one_thread):
        few, many = torch.zeros(2, 3), torch.zeros(recurrence.MOST, 2)
        assert recurrence.are_compiled(few)
        assert recurrence.are_compiled(many)
        assert not recurrence.are_compiled(few.double())
        wide = recurrence.WIDEST + 1
        assert recurrence.are_compiled(torch.zeros(recurrence.FEW - 1, wide))
        assert not recurrence.are_compiled(torch.zeros(recurrence.FEW, wide))
        torch.set_num_threads(2)
        assert recurrence.are_compiled(few)
        assert not recurrence.are_compiled(many)

    def test_same_functions(self):
        from capnets.nn.kernels import recurrence as compiled
        from capnets.nn.recurrence import operations

        assert set(compiled.__all__) == set(operations.__all__) - {"Kept"}
        for name in compiled.__all__:
            ours, theirs = (inspect.signature(getattr(m, name)) for m in (operations, compiled))
            few = [*ours.parameters][:2]
            assert [*theirs.parameters][:2] == few
            assert ours.return_annotation == theirs.return_annotation

    def test_sigmoid(self):
        """One after another on the whole range, through an RNN that only squashes."""
        x = torch.linspace(-50, 50, 20001)
        cell = RNNCell(1, 1)
        with torch.no_grad():
            cell.weight_input.fill_(1)
            cell.weight_state.zero_()
            cell.bias.zero_()
            z, _ = cell(x[:, None, None])
        torch.testing.assert_close(z.flatten().double(), x.double().tanh(), rtol=0, atol=3e-7)

    @pytest.mark.parametrize("kind", CELLS)
    def test_nan_stays_nan(self, kind):
        """Not a number must not look like an open gate."""
        e = torch.zeros(1, 3, 2)
        e[0, 1] = torch.nan
        z, _ = kind(2, 3)(e)
        assert z[0, 0].isfinite().all()
        assert z[0, 1:].isnan().all()


class TestSecondDerivatives:
    def twice(self, e):
        z, _ = GRUCell(4, 3).double()(e)
        (gradient,) = torch.autograd.grad(z.square().sum(), e, create_graph=True)
        gradient.square().sum().backward()

    def test_refused(self):
        with pytest.raises(RuntimeError, match=r"once; for second derivatives.*by_torch"):
            self.twice(draw(2, 3, 4))

    def test_by_torch(self):
        e = draw(2, 3, 4)
        with by_torch():
            self.twice(e)
        assert e.grad.any()
