"""A stream is its set, however it is cut, wherever it is moved."""

import itertools
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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
    with pytest.raises(InputError, match="no saved state"):
        StreamState.load(tmp_path / "nowhere")


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
        (np.ones((0, 3)), [], "by their numbers"),
    ],
)
def test_wrong_pushes_to_many(instances, which, message):
    streams = Streams(ENGINE, count=4)
    with pytest.raises(InputError, match=message):
        streams.push(instances, which=which)
    assert not streams.instances.any()
    assert not streams.predictions.any()


def test_count():
    with pytest.raises(InputError, match="at least 1"):
        Streams(ENGINE, count=0)
