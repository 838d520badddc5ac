"""Several threads share streams and engines."""

import sys
import threading
import tracemalloc

import numpy as np
import pytest

from capnets.export import Engine, Stream, Streams
from streaming import ENGINE, VALUES, X, network


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
    """The state of a stream and its returned values belong to the same instances."""
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
