"""A stream is its set, however it is cut, wherever it is moved."""

import itertools
import json
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from capnets.errors import InputError
from capnets.export import Engine, Stream, Streams, StreamState, export
from capnets.export import stream as one
from capnets.export import streams as many
from capnets.models import MODELS, build
from capnets.models.ensemble import Ensemble

CAPACITY = [name for name in MODELS if name.startswith("c-")]
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def network(name="c-gru", **about):
    return build(name, **{"seed": 0, "in_features": 3, "hidden": 8} | about).eval()


def wanted(model, x=X):
    with torch.no_grad():
        values = model.added_values(torch.from_numpy(x)[None])[0].numpy()
    return values[:, 0] if model.outputs == 1 else values


ENGINE = Engine(network("c-lstm"))
VALUES = wanted(network("c-lstm"))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", CAPACITY)
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
    """What an instance adds after millions of others is known as well as after a few."""
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


# Threads ----------------------------------------------------------------------------------------


@pytest.fixture
def impatient():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, count=4):
    failed = []

    def do(number):
        try:
            work(number)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=do, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_threads_push_one_after_another(impatient):
    """What a stream remembers and what it gave out are of the same instances."""
    engine = Engine(network("c-deepset"))  # which counts instances
    stream, given = Stream(engine), []

    def work(number):
        for k in range(300):
            values = stream.push(X[k % 50] if k % 3 else X[k % 50 : k % 50 + 2])
            given.append(values.sum(dtype=float))
            state = stream.state
            assert state.memory.sum() == pytest.approx(state.instances[0], rel=1e-5)

    in_threads(work)
    assert len(stream) == 4 * (200 + 2 * 100)
    assert stream.state.memory.sum() == pytest.approx(len(stream), rel=1e-5)
    assert stream.prediction == pytest.approx(sum(given), rel=1e-6)


def test_threads_advance_many_streams(impatient):
    streams = Streams(ENGINE, count=4)

    def work(number):
        for k, x in enumerate(X):
            value = streams.push(x[None], which=[number])
            np.testing.assert_allclose(value, VALUES[k : k + 1], rtol=1e-4, atol=1e-5)
            streams.reset(streams.add())

    in_threads(work)
    assert streams.instances.tolist() == [60] * 4 + [0] * 240


def test_threads_share_an_engine(impatient):
    engine = Engine(network("c-lstm"))

    def work(number):
        np.testing.assert_allclose(engine.added_values([X]), VALUES, rtol=1e-4, atol=1e-5)
        stream = Stream(engine)
        for k, x in enumerate(X):
            np.testing.assert_allclose(stream.push(x), VALUES[k : k + 1], rtol=1e-4, atol=1e-5)

    in_threads(work)


def test_values_given_out_do_not_change_later():
    stream = Stream(ENGINE)
    first = stream.push(X[0])
    kept, state = first.copy(), stream.state
    memory = state.memory.copy()
    stream.push(X[1])
    stream.push(X[2])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(state.memory, memory)


def test_memory_does_not_grow():
    stream = Stream(ENGINE)
    chunk = np.tile(X, (20, 1))
    for x in (X[0], chunk):
        stream.push(x)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(20):
        stream.push(chunk)
        for x in X:
            stream.push(x)
    for size in range(2, 42):  # more shapes than stay bound
        stream.push(chunk[:size])
    grown = sum(s.size_diff for s in tracemalloc.take_snapshot().compare_to(before, "filename"))
    tracemalloc.stop()
    assert len(stream) == 1 + 1200 + 20 * (1200 + 60) + sum(range(2, 42))
    assert grown < 50_000


# State ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 59])
def test_saved_restored_and_moved(tmp_path, cut):
    model = network("c-lstm")
    export(model, tmp_path / "exported")
    stream = Stream(model)
    if cut:
        for x in X[:cut]:
            stream.push(x)
    stream.state.save(tmp_path / "state")
    total = stream.prediction
    del stream
    moved = Stream(tmp_path / "exported", state=StreamState.load(tmp_path / "state"))
    assert len(moved) == cut
    assert moved.prediction == total
    np.testing.assert_allclose(moved.push(X[cut:]), VALUES[cut:], rtol=1e-4, atol=1e-5)
    assert moved.prediction == pytest.approx(VALUES.sum(dtype=float), rel=1e-5)


def test_a_path_is_a_state_too(tmp_path):
    stream = Stream(ENGINE)
    stream.push(X[:5])
    stream.state.save(tmp_path / "state")
    for path in (tmp_path / "state", str(tmp_path / "state")):
        again = Stream(ENGINE, state=path)
        assert again.prediction == stream.prediction
        assert len(again) == 5


def test_reset_and_copy():
    stream = Stream(ENGINE)
    stream.push(X[:7])
    other = stream.copy()
    stream.reset()
    assert len(stream) == stream.prediction == 0
    for k in range(53):
        np.testing.assert_allclose(stream.push(X[k]), VALUES[k : k + 1], rtol=1e-4, atol=1e-5)
    assert other.engine is stream.engine
    np.testing.assert_allclose(other.push(X[7:]), VALUES[7:], rtol=1e-4, atol=1e-5)


def test_streams_come_and_go(tmp_path):
    streams = Streams(ENGINE, count=2)
    streams.push(np.stack([X[:5], X[:5]]))
    assert streams.add().tolist() == [2]
    assert streams.add(state=streams.state([0])).tolist() == [3]
    assert streams.instances.tolist() == [5, 5, 0, 5]
    streams.drop([0, 2])
    streams.reset(0)
    assert streams.instances.tolist() == [0, 5]
    values = streams.push(X[[0, 5]])
    np.testing.assert_allclose(values, VALUES[[0, 5]], rtol=1e-4, atol=1e-5)
    streams.state().save(tmp_path / "state")
    again = Streams(ENGINE, state=tmp_path / "state")
    assert again.instances.tolist() == [1, 6]
    np.testing.assert_array_equal(again.predictions, streams.predictions)
    again.push(X[[1, 6]])
    assert streams.instances.tolist() == [1, 6]
    streams.reset()
    assert not streams.predictions.any()
    streams.drop([1, 0])
    assert len(streams) == 0
    assert streams.push(np.ones((0, 3))).shape == (0,)
    assert streams.add(3).tolist() == [0, 1, 2]
    assert Streams(ENGINE, count=0).add().tolist() == [0]


@pytest.mark.parametrize("outputs", [1, 2])
def test_no_streams_are_no_work(outputs):
    streams = Streams(network(outputs=outputs), count=2)
    last = () if outputs == 1 else (outputs,)
    for instances, shape in (([], (0,)), (np.ones((0, 3)), (0,)), (np.ones((0, 5, 3)), (0, 5))):
        assert streams.push(instances, which=[]).shape == (*shape, *last)
    assert len(streams.state([])) == 0
    streams.reset([])
    streams.drop([])
    assert streams.instances.tolist() == [0, 0]
    with pytest.raises(InputError, match="for 2 streams were pushed, but 0"):
        streams.push(np.ones((2, 3)), which=[])


def test_from_one_to_many_and_back():
    streams = Streams(ENGINE, count=3)
    single = Stream(ENGINE)
    single.push(X[:5])
    streams.restore(single.state, which=2)
    assert streams.instances.tolist() == [0, 0, 5]
    values = streams.push(np.stack([X[0], X[0], X[5]]))
    np.testing.assert_allclose(values, VALUES[[0, 0, 5]], rtol=1e-4, atol=1e-5)
    back = Stream(ENGINE, state=streams.state([2]))
    np.testing.assert_allclose(back.push(X[6:]), VALUES[6:], rtol=1e-4, atol=1e-5)


def test_the_state_of_another_network_is_refused(tmp_path):
    state = Stream(network("c-lstm", seed=1)).state
    with pytest.raises(InputError, match="belongs to another network"):
        Stream(ENGINE, state=state)
    with pytest.raises(InputError, match="belongs to another network"):
        Streams(ENGINE, count=1).restore(state)
    with pytest.raises(InputError, match="state of 3 streams, not of 1"):
        Stream(ENGINE, state=Streams(ENGINE, count=3).state())
    for content in (b"", b"torn", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(InputError, match="no saved state"):
            StreamState.load(tmp_path / "file")
    with pytest.raises(InputError, match=r"there is no file .*nowhere"):
        StreamState.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot read"):
        StreamState.load(tmp_path)


GOOD = Stream(ENGINE).state


@pytest.mark.parametrize(
    ("arrays", "about", "message"),
    [
        ({"memory": GOOD.memory.astype(np.float64)}, {}, "memory of type float64, but float32"),
        ({"memory": GOOD.memory * np.nan}, {}, "memory holds NaN"),
        ({"prediction": GOOD.prediction + np.inf}, {}, "prediction holds NaN or infinite"),
        ({"instances": np.array([-5])}, {}, "instances are negative"),
        ({"instances": np.array([1.5])}, {}, "instances is no array of whole numbers"),
        ({"memory": np.array(1, np.float32)}, {}, "memory is no array of numbers with 2 axes"),
        ({"memory": np.ones((2, 16), np.float32)}, {}, "of different numbers of streams"),
        ({"memory": np.ones((1, 5), np.float32)}, {}, r"shape \(1, 5\), but \(1, 16\)"),
        ({"more": np.ones(1)}, {}, "no saved state"),
        ({}, {"fingerprint": None}, "does not say which network"),
        ({}, {"format": "1"}, "no saved state"),
        ({}, {"format": 2}, "newer capnets"),
    ],
)
def test_what_is_no_sound_state(tmp_path, arrays, about, message):
    path = tmp_path / "state"
    tensors = {name: getattr(GOOD, name) for name in ("memory", "prediction", "instances")}
    about = {"format": 1, "fingerprint": GOOD.fingerprint} | about
    path.write_bytes(save(tensors | arrays, {"capnets.stream": json.dumps(about)}))
    for begin in (Stream, Streams):
        with pytest.raises(InputError, match=message):
            begin(ENGINE, state=path)
    with pytest.raises(InputError, match=message):
        Streams(ENGINE, count=1).restore(path)
    for wrong in (42, {"memory": 1}, StreamState(GOOD.fingerprint, None, None, None)):
        with pytest.raises(InputError, match="state"):
            Stream(ENGINE, state=wrong)


# Bad input --------------------------------------------------------------------------------------


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
@pytest.mark.parametrize("name", CAPACITY)
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
    assert reasons or name == "c-gru"  # whose operator bounds what it is given


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


@pytest.mark.parametrize("name", ["gru", "deepset", "set-transformer"])
def test_only_capacity_networks_stream(name):
    for make in (Stream, lambda source: Streams(source, count=2)):
        with pytest.raises(InputError, match="only capacity networks can be streamed"):
            make(network(name))


# Many -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("rows", [2, 7, 4096])
def test_many_streams_are_as_many_sets(monkeypatch, outputs, rows):
    monkeypatch.setattr(many, "ROWS", rows)
    model = network("c-gru", outputs=outputs)
    x = X.reshape(5, 12, 3)
    values = np.stack([wanted(model, part) for part in x])
    streams = Streams(model, count=5)
    assert len(streams) == 5
    found = [streams.push(x[:, :4])]
    found += [streams.push(x[:, 4])[:, None]]
    found += [streams.push(x[:, 5:])]
    np.testing.assert_allclose(np.concatenate(found, 1), values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(streams.predictions, values.sum(1), rtol=1e-4)


def test_some_streams_advance_while_others_wait():
    streams, rng = Streams(ENGINE, count=4), np.random.default_rng(2)
    position = np.zeros(4, dtype=int)
    while (position < len(X)).any():
        which = rng.permutation(np.flatnonzero(position < len(X)))[: rng.integers(1, 5)]
        values = streams.push(X[position[which]], which=which)
        np.testing.assert_allclose(values, VALUES[position[which]], rtol=1e-4, atol=1e-5)
        position[which] += 1
    assert streams.instances.tolist() == [60] * 4
    np.testing.assert_allclose(streams.predictions, VALUES.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("instances", "which", "message"),
    [
        (np.ones((2, 3)), None, "for 2 streams were pushed, but 4"),
        (np.ones((4, 5)), None, "reads 3 features"),
        (np.ones((4, 0, 3)), None, "nothing was pushed"),
        (np.full((4, 3), np.nan), None, "nan"),
        (np.ones((2, 3)), [0, 0], "twice"),
        (np.ones((2, 3)), [0, 4], "numbered from 0 to 3"),
        (np.ones((2, 3)), [-1, 0], "numbered from 0 to 3"),
        (np.ones((2, 3)), [0.5, 1], "by their numbers"),
        (np.ones((2, 3)), np.array([True, False]), "by their numbers"),
        (np.ones(3), 2, r"first axis should be that of streams: give 1 x 3 \(one instance each\)"),
        (np.ones((1, 1, 1, 3)), 2, "1 x size x 3"),
    ],
)
def test_wrong_pushes_to_many(instances, which, message):
    streams = Streams(ENGINE, count=4)
    with pytest.raises(InputError, match=message):
        streams.push(instances, which=which)
    assert not streams.instances.any()
    assert not streams.predictions.any()


@pytest.mark.parametrize("count", [-1, 2.5, "3"])
def test_count(count):
    with pytest.raises(InputError, match="count is a whole number of at least 0"):
        Streams(ENGINE, count=count)
    with pytest.raises(InputError, match="count is a whole number of at least 0"):
        Streams(ENGINE, count=1).add(count)


def test_a_count_or_a_state():
    with pytest.raises(InputError, match="either a count or a state"):
        Streams(ENGINE)
    for make in (lambda **how: Streams(ENGINE, **how), Streams(ENGINE, count=1).add):
        with pytest.raises(InputError, match="either a count or a state"):
            make(count=1, state=GOOD)
