import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.explain import shapley_values
from capnets.explain.bridges import game, presence_function
from capnets.models import build
from capnets.sets import Sets
from capnets.sets.batch import batches
from capnets.tasks import FUNCTIONS


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch) -> None:
    """Let tests import the methods that only benchmarks use."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")


@pytest.fixture
def ragged() -> Sets:
    rng = np.random.default_rng(0)
    return Sets.from_arrays([rng.normal(size=(n, 10)) for n in (4, 6, 6)])


def test_shapiq_computes_our_exact_values(ragged):
    shapiq = pytest.importorskip("shapiq")
    from capnets.explain import interactions

    model = build("c-gru", in_features=10, seed=0)
    ours, pairs = shapley_values(model, ragged), interactions(model, ragged)
    for k in range(len(ragged)):
        computer = shapiq.ExactComputer(game(model, ragged, k))
        theirs = computer("SV", order=1)
        values = [theirs[(i,)] for i in range(int(ragged.sizes[k]))]
        assert ours.values[ours.span(k)] == pytest.approx(values, abs=1e-5)
        both = computer("SII", order=2)
        own = pairs.set_index == k
        listed = [both[(int(i), int(j))] for i, j in np.c_[pairs.first, pairs.second][own]]
        assert pairs.values[own] == pytest.approx(listed, abs=1e-5)


def test_presence_really_removes(ragged):
    model = build("gru", in_features=10, seed=0)
    batch = next(iter(batches(ragged[1:], size=2)))
    function = presence_function(model, batch.x)
    present = torch.tensor([[1.0, 0, 1, 1, 0, 0], [0.0] * 6])
    with torch.no_grad():
        alone = model(batch.x[:1, [0, 2, 3]]).item()
    assert function(present).tolist() == pytest.approx([alone, 0], abs=1e-6)
    twice = function(torch.cat([present, torch.ones(2, 6)]))  # stacked, as captum does
    assert twice[2:] == pytest.approx(model(batch.x)[:, 0].detach(), abs=1e-6)


def test_captum_estimates_the_same_values(capacity, random_sets):
    pytest.importorskip("captum")
    from explain_peers import captum_shapley

    sets = random_sets("unique-sum", [5] * 6)
    found = captum_shapley(capacity("unique-sum"), sets, orders=200)
    closed = FUNCTIONS["unique-sum"].shapley(sets.index, sets.offsets)
    assert np.abs(found.values - closed).mean() < 0.2
    assert found.gaps == pytest.approx(0, abs=1e-4)
    with pytest.raises(InputError, match="equal size"):
        captum_shapley(capacity("unique-sum"), random_sets("unique-sum", [2, 3]))


def test_gradient_times_input_of_a_linear_network(ragged):
    """For a sum of linear values the method is exact: each instance's own part."""
    pytest.importorskip("captum")
    from explain_peers import gradient_times_input

    from capnets.nn.cells import Cell

    class Nothing(Cell):
        in_features = out_features = 10
        state_features = 1

        def forward(self, x, state=None):
            return x, x[:, -1, :1]

    from capnets.models import CapacityNetwork
    from capnets.nn.encoders import mlp

    linear = mlp(10, 1)
    linear[-1].bias.data.zero_()
    model = CapacityNetwork(
        encoder=torch.nn.Sequential(), cell=Nothing(), decoder=linear, activation="identity"
    )
    found = gradient_times_input(model, ragged)
    expected = linear(torch.from_numpy(ragged.instances))[:, 0].detach().numpy()
    assert found.values == pytest.approx(expected, abs=1e-5)
    assert found.gaps == pytest.approx(0, abs=1e-5)


def test_attention_weights_sum_to_the_prediction(ragged):
    from explain_peers import attention_weights

    model = build("attention", in_features=10, seed=0)
    found = attention_weights(model, ragged)
    assert found.gaps == pytest.approx(0, abs=1e-5)
    with pytest.raises(InputError, match="DeepSet has no attention weights"):
        attention_weights(build("deepset", in_features=10), ragged)


@pytest.mark.parametrize("library", ["shapiq", "captum"])
def test_a_missing_library_is_named(library, ragged, monkeypatch):
    from explain_peers import gradient_times_input

    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    model = build("c-gru", in_features=10)
    with pytest.raises(InputError, match=rf"{library} is not installed.*capnets\[bench\]"):
        game(model, ragged, 0) if library == "shapiq" else gradient_times_input(model, ragged)


def test_a_set_that_does_not_exist(ragged):
    pytest.importorskip("shapiq")
    with pytest.raises(InputError, match="set 3 does not exist"):
        game(build("c-gru", in_features=10), ragged, 3)
