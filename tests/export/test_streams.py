"""Many streams give the values of as many sets."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.export import Stream, Streams
from capnets.export import streams as many
from streaming import ENGINE, VALUES, X, network, wanted


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
        (np.ones(3), 2, r"first axis must be streams: give 1 x 3 \(one instance each\)"),
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
            make(count=1, state=Stream(ENGINE).state)
