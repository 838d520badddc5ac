"""All backends compute the same numbers and the same derivatives; one place chooses."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.evaluate import added_values, predict
from capnets.models import build
from capnets.nn import backend
from capnets.nn.backend import encode_scan_decode, explain, use
from capnets.nn.cells import GRUCell, LSTMCell, RNNCell
from capnets.nn.context import ContextCell
from capnets.nn.encoders import mlp
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

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
    """Compute the same in float64, module by module."""
    encoder, cell, decoder = copy.deepcopy((encoder, cell, decoder))
    z, _ = cell.double()(encoder.double()(x.double()))
    return z if decoder is None else decoder.double()(z)


def is_compiled(y):
    """Return whether `y` comes out of one compiled function and a transposition."""
    ((below, _), *_) = y.grad_fn.next_functions
    return type(below).__name__ == "_CompiledBackward"


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("sets", "size"), [(1, 1), (1, 200), (3, 10), (63, 1), (64, 2), (65, 3), (150, 2), (300, 1)]
)
def test_numbers_are_those_of_the_parts(cell, sets, size):
    x, parts = instances(sets, size), modules(cell)
    y = encode_scan_decode(x, *parts)
    assert is_compiled(y)
    torch.testing.assert_close(y.double(), exactly(x, *parts), rtol=1e-4, atol=1e-5)
    states = encode_scan_decode(x, *parts[:2])
    torch.testing.assert_close(states.double(), exactly(x, *parts[:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (3,), (64, 64), (17, 33, 5, 40)], ids=len)
@pytest.mark.parametrize("outputs", [1, 3])
def test_any_number_of_layers(hidden, outputs):
    x, parts = instances(30, 10), modules(hidden=hidden, outputs=outputs)
    torch.testing.assert_close(
        encode_scan_decode(x, *parts).double(), exactly(x, *parts), rtol=1e-4, atol=1e-5
    )


def derivatives(y, weights, inputs, **options):
    return torch.autograd.grad((y * weights).sum(), inputs, **options)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("sets", "size"), [(1, 1), (1, 150), (3, 10), (65, 3), (200, 4)])
def test_derivatives(cell, sets, size):
    """Of every parameter and every instance, against twice as many digits."""
    x, parts = instances(sets, size).requires_grad_(), modules(cell, kinds=33)
    double = [copy.deepcopy(part).double() for part in parts]
    y = encode_scan_decode(x, *parts)
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
    encode_scan_decode(x, *parts).sum().backward()
    assert x.grad is None
    assert all(p.grad.isfinite().all() for part in parts for p in part.parameters())


def test_frozen_parameters():
    x, (encoder, cell, decoder) = instances(4, 5), modules()
    encoder.requires_grad_(False)
    encode_scan_decode(x, encoder, cell, decoder).sum().backward()
    assert all(p.grad is None for p in encoder.parameters())
    assert all(p.grad.any() for p in decoder.parameters())


@pytest.mark.parametrize("cell", CELLS)
def test_the_same_bits_where_nothing_is_differentiated(cell):
    x, parts = instances(50, 10), modules(cell, hidden=(64, 64))
    with torch.no_grad():
        assert torch.equal(encode_scan_decode(x, *parts), encode_scan_decode(x, *parts))
        without = encode_scan_decode(x, *parts)
    assert torch.equal(without, encode_scan_decode(x, *parts).detach())


@pytest.mark.parametrize("cell", CELLS)
def test_nan_stays_nan(cell):
    """Not a number must not look like a closed gate, and must not reach other sets."""
    x, parts = instances(70, 4), modules(cell)
    x[1, 2, 0] = torch.nan
    y = encode_scan_decode(x, *parts)
    assert y[1, 2:].isnan().all()
    y[1, 2:] = 0
    assert y.isfinite().all()


class TestTwice:
    def test_backward(self):
        """The first backward pass frees the stored activations; the second recomputes them."""
        x, parts = instances(3, 4).requires_grad_(), modules()
        y = encode_scan_decode(x, *parts)
        once, again = (derivatives(y, y.detach(), [x], retain_graph=True) for _ in range(2))
        torch.testing.assert_close(once, again)

    @pytest.mark.parametrize("cell", CELLS)
    def test_second_derivatives(self, cell):
        x, parts = instances(3, 4).requires_grad_(), modules(cell)

        def twice(y):
            (gradient,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), x)[0]

        ours = twice(encode_scan_decode(x, *parts))
        encoder, cell, decoder = (copy.deepcopy(part).double() for part in parts)
        with use("reference"):
            z, _ = cell(encoder(x.double()))
            theirs = twice(decoder(z))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_parameters_changed_before_the_way_back():
    x, parts = instances(3, 4), modules()
    y = encode_scan_decode(x, *parts)
    with torch.no_grad():
        parts[0][0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


class TestWhere:
    """One function is used where it is the quicker way, and can do what is asked of it."""

    def is_compiled(self, x=None, parts=None):
        return is_compiled(
            encode_scan_decode(instances(2, 3) if x is None else x, *(parts or modules()))
        )

    def test_here(self):
        assert self.is_compiled()

    @pytest.mark.parametrize("sets", [2, 300])
    def test_whatever_the_number_of_threads(self, sets):
        x = instances(sets, 10)
        torch.set_num_threads(2)
        assert self.is_compiled(x)

    def test_wide_recurrences_with_several_threads_are_left_to_torch(self):
        parts = modules(GRUCell, kinds=256)
        for threads, sets, compiled in [(1, 8, True), (2, 8, False), (2, 3, True)]:
            torch.set_num_threads(threads)
            assert self.is_compiled(instances(sets, 2), parts) == compiled

    def test_not_in_double_precision(self):
        assert not self.is_compiled(instances(2, 3).double(), [p.double() for p in modules()])

    @pytest.mark.parametrize("name", ["native", "reference"])
    def test_not_when_another_backend_is_asked_for(self, name):
        with use(name):
            assert not self.is_compiled()
        assert self.is_compiled()

    def test_not_with_large_layers(self):
        assert not self.is_compiled(parts=modules(hidden=(backend.LARGE_LAYER // 5 + 1,)))

    @pytest.mark.parametrize("layer", [nn.Tanh(), nn.Dropout(0.5)], ids=str)
    def test_not_with_other_layers(self, layer):
        _, cell, decoder = modules()
        assert not self.is_compiled(parts=(nn.Sequential(nn.Linear(5, 6), layer), cell, decoder))
        between = nn.Sequential(nn.Linear(5, 9), layer, nn.Linear(9, 6))
        assert not self.is_compiled(parts=(between, cell, decoder))

    def test_not_without_a_bias(self):
        _, cell, decoder = modules()
        assert not self.is_compiled(
            parts=(nn.Sequential(nn.Linear(5, 6, bias=False)), cell, decoder)
        )

    @pytest.mark.parametrize("cell", CELLS)
    def test_not_with_hooks(self, cell):
        encoder, cell, decoder = parts = modules(cell)
        for module in (encoder, encoder[1], cell, decoder[2]):
            heard = []
            handle = module.register_forward_hook(lambda *_, heard=heard: heard.append(1))
            assert not self.is_compiled(parts=parts)
            assert heard == [1]
            handle.remove()
            assert self.is_compiled(parts=parts)

    def test_not_inside_transforms(self):
        x, parts = instances(4, 3), modules()
        each = torch.func.vmap(lambda one: encode_scan_decode(one[None], *parts)[0])(x)
        torch.testing.assert_close(each, encode_scan_decode(x, *parts))

    def test_not_for_nothing(self):
        assert encode_scan_decode(instances(2, 0), *modules()).shape == (2, 0, 2)
        assert encode_scan_decode(instances(0, 3), *modules()).shape == (0, 3, 2)

    @pytest.mark.parametrize("name", ["c-rnn", "c-lstm", "c-gru", "c-deepset", "rnn", "lstm"])
    @pytest.mark.parametrize("other", ["native", "reference"])
    def test_the_networks_of_this_project(self, name, other):
        model, x = build(name, in_features=5, seed=0), instances(20, 10)
        assert "kernels" in explain(model, x)
        used = model(x)
        with use(other):
            assert "kernels" not in explain(model, x)
            torch.testing.assert_close(used, model(x), rtol=1e-4, atol=1e-5)


class TestWhatDoesNotFit:
    """Compiled loops would read and write beside their memory; torch says what is wrong."""

    @pytest.mark.parametrize("cell", CELLS)
    def test_features(self, cell):
        encoder, _, decoder = modules(cell)
        _, other, _ = modules(cell, features=7)
        with pytest.raises(InputError, match="this cell was built for 7"):
            encode_scan_decode(instances(2, 3), encoder, other, decoder)

    @pytest.mark.parametrize("cell", CELLS)
    def test_states(self, cell):
        encoder, cell, _ = modules(cell)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            encode_scan_decode(instances(2, 3), encoder, cell, mlp(cell.out_features + 1, 1))

    def test_instances(self):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            encode_scan_decode(instances(2, 3, inputs=4), *modules())

    @pytest.mark.parametrize("name", ["encoder", "kind", "gate"])
    def test_a_bias_that_was_replaced(self, name):
        encoder, cell, decoder = modules()
        layer = encoder[0] if name == "encoder" else getattr(cell, name)
        layer.bias = nn.Parameter(torch.zeros(len(layer.bias) + 1))
        with pytest.raises(RuntimeError, match=r"must match|expand"):
            encode_scan_decode(instances(2, 3), encoder, cell, decoder)

    def test_parameters_of_a_recurrence_that_were_replaced(self):
        encoder, cell, decoder = modules(RNNCell)
        cell.bias = nn.Parameter(torch.zeros(3))
        with pytest.raises(InputError, match="parameters of a cell have shapes"):
            encode_scan_decode(instances(2, 3), encoder, cell, decoder)


class TestSecondDerivatives:
    """They depend neither on threads nor on the size of a batch."""

    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("sets", [3, 300])
    @pytest.mark.parametrize("name", ["c-rnn", "c-gru", "c-lstm", "c-deepset", "gru"])
    def test_of_networks(self, name, sets, threads):
        torch.set_num_threads(threads)
        model, x = build(name, in_features=5, seed=0), instances(sets, 10).requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        weight = model.encoder[0].weight
        assert weight.grad.isfinite().all()
        assert weight.grad.any()

    @pytest.mark.parametrize("kind", CELLS)
    def test_of_a_cell_and_its_state(self, kind):
        cell = kind(5, 4)
        e, state = instances(3, 4).requires_grad_(), cell.initial_state(3).requires_grad_()

        def twice(name):
            with use(name):
                z, after = cell(e, state)
            first = torch.autograd.grad(
                z.square().sum() + after.sum(), [e, state], create_graph=True
            )
            return torch.autograd.grad(sum(g.square().sum() for g in first), [e, state])

        torch.testing.assert_close(twice("auto"), twice("reference"), rtol=1e-4, atol=1e-5)

    def test_with_the_parameters_of_the_call(self):
        """`functional_call` lends parameters to a module; the module has its own again later."""
        model, x = build("c-gru", in_features=5, seed=0), instances(3, 4).requires_grad_()
        lent = {name: 2 * p.detach() for name, p in model.named_parameters()}

        def twice(name):
            with use(name):
                y = torch.func.functional_call(model, lent, (x,))
            (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), x)

        torch.testing.assert_close(twice("auto"), twice("reference"), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "hidden", "sets", "chosen"),
    [
        ("c-gru", 512, 1, "kernels"),
        ("c-gru", 512, 100, "kernels"),
        ("c-lstm", 32, 100, "kernels"),
        ("c-lstm", 64, 1, "kernels"),
        ("c-lstm", 64, 2, "native"),
        ("c-lstm", 512, 1, "native"),
    ],
)
def test_the_faster_backend_is_chosen(kind, hidden, sets, chosen):
    """As measured by benchmarks/grid.py: torch computes wide LSTMs by one call of oneDNN."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    model = build(kind, in_features=3, hidden=hidden, seed=0)
    *_, of_cell = explain(model, torch.zeros(sets, 4, 3)).splitlines()
    assert f": {chosen} (" in of_cell


class TestThreads:
    """Small networks get one thread for a block; afterwards torch has its threads again."""

    @pytest.mark.parametrize(("features", "inside"), [(5, 1), (1024, 2)])
    def test_by_size(self, features, inside):
        torch.set_num_threads(2)
        model = build("c-gru", in_features=features, seed=0)
        with backend.threads_for(model):
            assert torch.get_num_threads() == inside
        assert torch.get_num_threads() == 2

    @pytest.mark.parametrize("work", [predict, added_values])
    def test_prediction(self, work, monkeypatch):
        """With two threads it took six times the processor time."""
        torch.set_num_threads(2)
        model, seen = build("c-gru", in_features=5, seed=0), []
        monkeypatch.setattr(
            model.inputs, "forward", lambda x: seen.append(torch.get_num_threads()) or x
        )
        work(model, Sets.from_arrays([np.ones((3, 5))]))
        assert seen == [1]
        assert torch.get_num_threads() == 2

    def test_training_gives_the_same_bits(self):
        x = instances(600, 10, inputs=64)
        sets = Sets.from_padded(x.numpy(), y=x.sum((1, 2)).numpy())
        weights = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            model = build("c-gru", in_features=64, seed=0)
            fit(model, sets, recipe=Recipe(epochs=1, batch_size=300))
            weights.append([p.detach() for p in model.parameters()])
        assert all(map(torch.equal, *weights))


class TestExplain:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda model, x: (model, x), "kernels (one compiled function)"),
            (lambda model, x: (model.double(), x.double()), "float32 on a CPU, not torch.float64"),
            (lambda model, x: (model, x[:, :0]), ""),
            (lambda model, x: (hooked(model), x), "hooks"),
        ],
    )
    def test_reasons(self, change, words):
        model, x = change(build("c-gru", in_features=5, seed=0), instances(2, 3))
        assert words in explain(model, x)

    def test_a_network_without_a_cell(self):
        assert "no cell" in explain(build("deepset", in_features=5, seed=0), instances(2, 3))

    def test_draws_no_random_numbers(self):
        model = build("c-gru", in_features=5, seed=0, inputs="standardize", dropout=0.5).train()
        before = torch.get_rng_state()
        explain(model, instances(2, 3))
        assert torch.equal(torch.get_rng_state(), before)

    def test_unknown_backend(self):
        with pytest.raises(InputError, match="did you mean 'kernels'"), use("kernel"):
            pass


def hooked(model):
    model.cell.register_forward_hook(lambda *_: None)
    return model
