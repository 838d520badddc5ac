"""Kernels compute the states and gradients of torch's own cells."""

import pytest
import torch

from capnets.nn.backend import explain, use
from capnets.nn.cells import GRUCell, LSTMCell, RNNCell

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


@pytest.fixture(params=["kernels", "reference"])
def each_backend(request):
    with use(request.param):
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [1, 2, 10])
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("each_backend")
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


@pytest.mark.parametrize("sets", [1, 3, 4, 130])
@pytest.mark.parametrize("kind", CELLS)
def test_the_same_whether_differentiated_or_not(kind, sets):
    cell, e = kind(4, HIDDEN), draw(sets, 7, 4, dtype=torch.float32)
    state = draw(sets, cell.state_features, dtype=torch.float32)
    with torch.no_grad():
        plain = cell(e, state)
    torch.testing.assert_close(plain, cell(e, state))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("each_backend")
def test_saturated_gates_stay_finite(kind):
    cell = kind(2, 3)
    e = (1e4 * draw(2, 5, 2, dtype=torch.float32)).detach().requires_grad_()
    ours, theirs = cell(e), cell.native(e, cell.initial_state(2))
    torch.testing.assert_close(ours, theirs)
    for gradient in gradients_of(ours, [e, *cell.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("use", ["last state only", "one set only", "state only"])
@pytest.mark.usefixtures("each_backend")
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
@pytest.mark.usefixtures("each_backend")
def test_same_bits_again(kind):
    cell = kind(4, 8)
    e = draw(6, 7, 4, dtype=torch.float32)
    first, second = (gradients_of(cell(e), [e, *cell.parameters()]) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.usefixtures("each_backend")
def test_inputs_stay_as_they_were(kind):
    cell = kind(4, 8)
    e, state = draw(3, 5, 4, dtype=torch.float32), draw(3, cell.state_features, dtype=torch.float32)
    before = [t.detach().clone() for t in (e, state, *cell.parameters())]
    gradients_of(cell(e, state), [e, state])
    assert all(
        torch.equal(a, b) for a, b in zip(before, (e, state, *cell.parameters()), strict=True)
    )


class TestArithmetic:
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


@pytest.mark.parametrize("hidden", [1, 3, 64, 129, 256])
@pytest.mark.parametrize("sets", [1, 5])
@pytest.mark.parametrize("kind", CELLS)
def test_any_width(kind, sets, hidden, one_thread):
    torch.manual_seed(0)
    cell, e = kind(4, hidden), draw(sets, 3, 4, dtype=torch.float32)
    with use("kernels"):
        assert "kernels" in explain(cell, e)
        ours = cell(e)
    theirs = cell.native(e, cell.initial_state(sets))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for a, b in zip(
        gradients_of(ours, [e, *cell.parameters()]),
        gradients_of(theirs, [e, *cell.parameters()]),
        strict=True,
    ):
        assert (a - b).norm() <= 1e-5 * b.norm()
