"""The same seed gives the same bits, whatever other threads and processes do."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pytest
import torch
from torch import nn

from capnets import SetRegressor
from capnets.evaluate import added_values, order_sensitivity, predict
from capnets.models import MODELS, ModelSpec, build
from capnets.nn.random import draw_from, draws_elsewhere, generator
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.priors import Consistent
from small_networks import QUICK, bits

DROPOUT = {"inputs": "standardize", "dropout": 0.5}


@pytest.fixture(autouse=True)
def untouched():
    """Fail if a test changes the generators of the caller."""
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    yield
    assert torch.equal(torch_state, torch.get_rng_state())
    for before, after in zip(numpy_state, np.random.get_state(), strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(before, after)


class Noise(threading.Thread):
    """Seed and draw from torch's global generator as fast as possible."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.state = torch.get_rng_state()
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            torch.manual_seed(0)
            torch.rand(100)

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *error: object) -> None:
        self.done.set()
        self.join()
        torch.set_rng_state(self.state)


class WithDropout(nn.Sequential):
    """A foreign module with a dropout layer of torch."""

    def __init__(self) -> None:
        super().__init__(nn.Dropout(0.5), nn.Linear(4, 4))


class TestDrawFrom:
    DRAWS = (
        lambda: torch.rand(3),
        lambda: torch.randn(3),
        lambda: torch.randint(5, (3,)),
        lambda: torch.randint(2, 5, (3,)),
        lambda: torch.randperm(9),
        lambda: torch.rand_like(torch.ones(3)),
        lambda: torch.randint_like(torch.ones(3), 1, 9),
        lambda: torch.bernoulli(torch.full((9,), 0.5)),
        lambda: torch.multinomial(torch.ones(9), 2),
        lambda: torch.normal(torch.zeros(3), 1.0),
        lambda: nn.functional.dropout(torch.ones(9, requires_grad=True)).detach(),
        lambda: nn.functional.alpha_dropout(torch.ones(9), training=True),
        lambda: nn.functional.gumbel_softmax(torch.ones(4)),
        lambda: nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 3, 4)] * 3),
        lambda: nn.GRU(3, 4, 2, dropout=0.5)(torch.ones(2, 3, 3))[0].detach(),
        lambda: nn.init.orthogonal_(torch.empty(4, 4)),
        lambda: nn.init.trunc_normal_(torch.empty(4)),
        lambda: nn.MultiheadAttention(4, 2, dropout=0.5)(*[torch.ones(3, 4)] * 3)[0].detach(),
    )

    @pytest.mark.parametrize("draw", DRAWS)
    def test_bits_are_those_of_a_seeded_global_generator(self, draw):
        with draw_from(5):
            found = draw()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            assert torch.equal(found, draw())

    def test_native_dropout_as_on_cuda(self):
        x = torch.ones(10_000)
        with draw_from(5):
            y, kept = torch.ops.aten.native_dropout(x, 0.25, True)
            same, _ = torch.ops.aten.native_dropout(x, 0.25, False)
        assert torch.equal(y, kept / 0.75)
        assert torch.equal(same, x)
        assert kept.float().mean() == pytest.approx(0.75, abs=0.02)

    def test_blocks_nest_and_go_on(self):
        block = draw_from(1)
        with block:
            first = torch.rand(1)
            with draw_from(2):
                torch.rand(1)
        with block:
            second = torch.rand(1)
        with draw_from(1):
            assert torch.equal(torch.rand(2), torch.cat([first, second]))

    def test_without_redirection_modules_that_ask_get_the_generator(self):
        cpu = torch.device("cpu")
        source = torch.Generator().manual_seed(3)
        with draw_from(source, redirect=False):
            assert generator(cpu) is source
        assert generator(cpu) is None

    def test_modules_that_draw_elsewhere(self):
        for name in MODELS:
            assert not draws_elsewhere(build(name, in_features=4, **DROPOUT, seed=0))
        with draw_from(0):
            foreign = WithDropout(), nn.Dropout(), nn.GRU(2, 2, 2, dropout=0.1)
        assert all(map(draws_elsewhere, foreign))
        assert not draws_elsewhere(Consistent())


class TestBuild:
    @pytest.mark.parametrize("name", MODELS)
    def test_weights_are_those_of_a_seeded_global_generator(self, name):
        spec = ModelSpec(name, in_features=4, hidden=8, members=2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            expected = bits(spec.build(None))
        assert bits(spec.build(7)) == expected

    def test_threads_build_the_same_networks(self):
        def make(seed: int) -> bytes:
            return bits(build("c-gru", in_features=8, hidden=64, seed=seed))

        alone = [make(seed) for seed in range(100)]
        with Noise(), ThreadPoolExecutor(2) as pool:
            assert list(pool.map(make, range(100))) == alone


class TestFit:
    @pytest.fixture(params=["dropout", "dropout of torch", "consistent", "pictures", "members"])
    def train(self, request, make):
        def train(seed: int = 0) -> bytes:
            settings = {"dropout": DROPOUT, "members": {"members": 2, **DROPOUT}}
            sets, how = make(), replace(QUICK, epochs=2)
            if request.param == "pictures":
                pool = np.eye(4, dtype=np.float32).repeat(16, 1).reshape(4, 1, 8, 8)
                sets = Sets(pool, sets.index, sets.offsets, sets.y)
                settings["pictures"] = {"inputs": "pictures", "warp": True}
            model = build("c-gru", in_features=4, hidden=8, seed=seed,
                          **settings.get(request.param, {}))  # fmt: skip
            if request.param == "dropout of torch":
                with draw_from(seed):
                    model.inputs = WithDropout()
            priors = [Consistent()] if request.param == "consistent" else []
            fit(model, sets, recipe=how, seed=seed, priors=priors)
            return bits(model)

        return train

    def test_bits_do_not_depend_on_other_threads(self, train):
        alone = [train(seed) for seed in range(3)]
        assert len(set(alone)) == 3
        with Noise(), ThreadPoolExecutor(2) as pool:
            assert list(pool.map(train, range(3))) == alone

    def test_two_torch_threads_give_the_same_bits_for_small_batches(self, request, train):
        if "pictures" in request.node.name:
            pytest.skip("torch's convolutions add up in another order with other threads")
        one = train()
        torch.set_num_threads(2)
        assert train() == one


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_estimators_fit_the_same_in_threads_and_processes(backend):
    def estimate(random_state: int, threads: int = 1) -> list[float]:
        torch.set_num_threads(threads)
        draw = np.random.default_rng(0)
        X = [draw.normal(size=(n, 40)).astype(np.float32) for n in draw.integers(1, 5, size=60)]
        y = np.array([x[:, 0].sum() for x in X])
        model = SetRegressor(
            "c-gru", random_state=random_state, epochs=3, members=2, network={"dropout": 0.5}
        )
        return model.fit(X, y).predict(X).tolist()

    seeds = [0, 1, 2]
    alone = [estimate(seed) for seed in seeds]
    assert all(a != b for a, b in pairwise(alone))
    jobs = (joblib.delayed(estimate)(seed, threads) for threads in (1, 2) for seed in seeds)
    assert joblib.Parallel(n_jobs=2, backend=backend)(jobs) == 2 * alone


def test_public_calls_leave_the_generators_alone(make):
    sets = make()
    model = build("c-gru", in_features=4, seed=0, **DROPOUT)
    fit(model, sets, make(seed=1), recipe=replace(QUICK, epochs=1))
    predict(model, sets)
    added_values(model, sets)
    order_sensitivity(model, sets)
    sets.split([0.5, 0.5], torch.Generator())
