"""Stream states are saved, restored, moved, and rejected by other networks."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

from capnets.errors import InputError
from capnets.export import Stream, Streams, StreamState, export
from streaming import ENGINE, VALUES, X, network


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
        ({}, {"fingerprint": None}, "does not name its network"),
        ({}, {"format": "1"}, "no saved state"),
        ({}, {"format": 2}, "is damaged"),
        ({}, {"format": 3}, "newer capnets"),
    ],
)
def test_invalid_states(tmp_path, arrays, about, message):
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
