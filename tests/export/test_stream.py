"""A stream gives the values of its set, in any chunks; invalid input changes nothing."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.export import Stream, Streams
from capnets.export import stream as one
from capnets.models.ensemble import Ensemble
from streaming import ENGINE, OTHERS, STEPPING, VALUES, X, network, wanted


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", STEPPING)
def test_a_stream_is_its_set(name, outputs):
    model = network(name, outputs=outputs, activation="identity", inputs="standardize")
    values = wanted(model)
    stream = Stream(model)
    assert len(stream) == 0
    np.testing.assert_array_equal(stream.prediction, 0 if outputs == 1 else [0, 0])
    for k, x in enumerate(X):
        np.testing.assert_allclose(stream.push(x), values[k : k + 1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(stream.prediction, values[: k + 1].sum(0), rtol=1e-4, atol=1e-4)
    assert len(stream) == len(X)
    np.testing.assert_allclose(Stream(model).push(X), values, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(cuts=st.lists(st.integers(1, 59), max_size=20), piece=st.sampled_from([1, 3, 8, 4096]))
def test_cuts_do_not_matter(cuts, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "ROWS", piece)  # pushes are themselves cut
        stream = Stream(ENGINE)
        edges = [0, *sorted(set(cuts)), len(X)]
        parts = [stream.push(X[a:b]) for a, b in itertools.pairwise(edges)]
    np.testing.assert_allclose(np.concatenate(parts), VALUES, rtol=1e-4, atol=1e-5)
    assert stream.prediction == pytest.approx(VALUES.sum(dtype=float), rel=1e-5)
    assert len(stream) == len(X)


def test_ensembles_and_pictures():
    twins = Ensemble([network("c-gru"), network("c-rnn", seed=1)]).eval()
    np.testing.assert_allclose(Stream(twins).push(X), wanted(twins), rtol=1e-4, atol=1e-5)
    model = network(inputs="pictures")
    small, large = (np.random.default_rng(1).normal(size=(3, 1, n, n)) for n in (9, 12))
    stream = Stream(model)
    values = [stream.push(p) for p in (small[0], large[0], large[1:], small[1:2])]
    assert [len(v) for v in values] == [1, 1, 2, 1]
    again = Stream(model)
    np.testing.assert_allclose(again.push(small[0][None]), values[0], rtol=1e-5)
    np.testing.assert_allclose(again.push(large), np.concatenate(values[1:3]), rtol=1e-5)


def test_ensembles_of_ensembles():
    inner = Ensemble([network("c-gru"), network("c-potential", seed=1)])
    model = Ensemble([inner, network("c-deepset", seed=2)]).eval()
    values = wanted(model)
    stream = Stream(model)
    np.testing.assert_allclose(stream.push(X[:30]), values[:30], rtol=1e-4, atol=1e-5)
    for k in range(30, 60):
        np.testing.assert_allclose(stream.push(X[k]), values[k : k + 1], rtol=1e-4, atol=1e-5)


def test_tensors_may_have_derivatives():
    x = torch.from_numpy(X[:3])
    half = x.to(torch.bfloat16)
    for tensors in (x.clone().requires_grad_(), x.double(), [*x], half.requires_grad_()):
        found = Stream(ENGINE).push(tensors)
        np.testing.assert_allclose(found, VALUES[:3], rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", ["c-deepset", "c-potential"])
def test_long_streams_keep_their_digits(name):
    """Added values after millions of instances are as precise as after a few."""
    model, exact = network(name, seed=3), network(name, seed=3).double()
    stream, count = Stream(model), 2**25
    stream.push(X)
    long = stream.state
    long.memory[...] *= count / len(X)  # as after pushing the same again and again
    first, second = Stream(model, state=long), Stream(model, state=long)
    state = torch.from_numpy(long.memory).double()
    with torch.no_grad():
        for k, x in enumerate(X[:10]):
            value, state = exact.step(torch.from_numpy(x).double()[None], state)
            np.testing.assert_allclose(first.push(x), value[0], rtol=1e-5)
            np.testing.assert_allclose(second.push(X[[k, k]])[:1], value[0], rtol=1e-4)
            second = Stream(model, state=first.state)
    np.testing.assert_allclose(first.state.memory, state, rtol=1e-12)


def spoiled(value):
    x = X[:4].copy()
    x[2, 1] = value
    return x


@pytest.mark.parametrize(
    ("instances", "message"),
    [
        (np.ones((2, 4)), "4 features, but this network reads 3 features"),
        (np.ones(4), "reads 3 features"),
        (np.ones((2, 2, 3)), "2 x 3"),
        (1.0, "reads 3 features"),
        (np.ones((0, 3)), "nothing was pushed"),
        ([], "reads 3 features"),
        (spoiled(np.nan), r"instances\[2, 1\] is nan"),
        (spoiled(-np.inf), r"instances\[2, 1\] is -inf"),
        ([1.0, np.nan, 2.0], r"instances\[1\] is nan"),
        ([1.0, "many", 2.0], "array of numbers"),
        (None, "reads 3 features"),
        ([[1.0, 2.0, 3.0], [1.0]], "array of numbers"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_wrong_pushes_change_nothing(instances, message, begun):
    stream = Stream(ENGINE)
    if begun:
        stream.push(X[0])
    before = stream.state
    with pytest.raises(InputError, match=message):
        stream.push(instances)
    after = stream.state
    for name in ("memory", "prediction", "instances"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_large_but_finite_numbers_are_no_fault():
    assert np.isfinite(Stream(ENGINE).push(np.full(3, 1e30, dtype=np.float32))).all()


HUGE = np.array([3e38, -3e38, 3e38], dtype=np.float32)


def refusal(stream, instances):
    """Why a push was refused; None where it was not."""
    try:
        assert np.isfinite(stream.push(instances)).all()
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", STEPPING)
def test_numbers_that_overflow_change_nothing(monkeypatch, name, outputs):
    monkeypatch.setattr(one, "ROWS", 4)
    stream = Stream(network(name, outputs=outputs))
    stream.push(X[:5])
    before, reasons = stream.state, []
    for place in range(10):
        many = X[:10].copy()
        many[place] = HUGE
        for instances in (HUGE, HUGE[None], many, many[: place + 1]):
            other = stream.copy()
            if reason := refusal(other, instances):
                reasons.append(reason)
                assert instances is not many or f"instances[{place}, " in reason
                for what in ("memory", "prediction", "instances"):
                    found = getattr(other.state, what)
                    np.testing.assert_array_equal(found, getattr(before, what))
            assert np.isfinite(other.push(X[6])).all()
    # The operator of C-GRU bounds what it is given; statistics are kept in float64; weights of
    # C-Linear are below 1.
    assert reasons or name in ("c-gru", "c-pool", "c-trees", "c-linear")


def test_numbers_that_overflow_change_none_of_many():
    streams = Streams(network("c-potential"), count=3)
    streams.push(X[:3])
    before = streams.state()
    for instances in (np.stack([X[0], HUGE, X[1]]), np.stack([X[:2], X[:2], [X[0], HUGE]])):
        with pytest.raises(InputError, match=r"instances\[.* is 3e\+38"):
            streams.push(instances)
    for what in ("memory", "prediction", "instances"):
        np.testing.assert_array_equal(getattr(streams.state(), what), getattr(before, what))


@pytest.mark.parametrize("size", [2, 3])
def test_pictures_that_are_too_small(size):
    stream = Stream(network(inputs="pictures"))
    for shape in ((1, size, 9), (1, 9, size), (1, 0, 9), (5, 1, size, size)):
        with pytest.raises(InputError, match="at least 4 x 4"):
            stream.push(np.zeros(shape))
    assert len(stream) == 0


@pytest.mark.parametrize("name", OTHERS)
def test_only_capacity_networks_stream(name):
    for make in (Stream, lambda source: Streams(source, count=2)):
        with pytest.raises(InputError, match="only capacity networks can be streamed"):
            make(network(name))
