"""Damaged and hostile exports and stream states raise an error; nothing is computed from them."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.export import Engine, Stream, StreamState, export
from capnets.ingest import Columns
from capnets.models import build
from exported import EXPORTED


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "out"
    export(build("c-rnn", in_features=2, hidden=4, seed=0), folder)
    return folder


def flips(data: bytes, count: int):
    rng = np.random.default_rng(0)
    for place in rng.choice(len(data) * 8, size=count, replace=False):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        yield bytes(flipped)


NAMES = ("README.md", "card.json", "chunk.onnx", "manifest.json", "sets.onnx", "step.onnx")


@pytest.mark.parametrize("name", NAMES)
def test_one_flipped_bit(exported, name):
    path = exported / name
    data = path.read_bytes()
    try:
        for flipped in flips(data, 60):
            path.write_bytes(flipped)
            with pytest.raises(InputError, match="is damaged"):
                Engine(exported)
    finally:
        path.write_bytes(data)
    assert Engine(exported).verified


def test_without_a_manifest(exported, tmp_path):
    """Exports of earlier versions run, unchecked."""
    for path in exported.iterdir():
        if path.name != "manifest.json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    engine = Engine(tmp_path)
    assert not engine.verified
    assert engine.fingerprint == Engine(exported).fingerprint


def test_one_flipped_bit_in_the_state_of_a_stream(exported, tmp_path):
    stream = Stream(exported)
    stream.push([1.0, 2.0])
    path = tmp_path / "state"
    stream.state.save(path)
    data = path.read_bytes()
    for flipped in flips(data, 200):
        path.write_bytes(flipped)
        with pytest.raises(InputError):
            StreamState.load(path)
    path.write_bytes(data)
    assert StreamState.load(path).fingerprint == stream.state.fingerprint


def test_weights_in_another_file(exported, tmp_path, monkeypatch):
    """ONNX Runtime would read them from the working directory."""
    model = onnx.load_from_string((exported / "sets.onnx").read_bytes())
    weight = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="other.bin")
    (tmp_path / "sets.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="keeps its weights in another file"):
        Engine(tmp_path)


@pytest.mark.parametrize("name", EXPORTED)
def test_graphs_record_the_abilities_of_a_network(name):
    model = build(name, in_features=3, hidden=4, seed=0)
    engine = Engine(model)
    assert engine.additive == model.additive
    assert engine.streams == hasattr(model, "state_features")


def test_names_with_html_are_escaped(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"s": [0, 0, 1], "<script>alert(1)</script>": [1.0, 2, 3], "y": [1, 1, 2]})
    columns = Columns(set="s", target="y")
    SetRegressor("c-rnn", hidden=4, epochs=1, columns=columns).fit(frame).save(tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    names = json.loads((tmp_path / "out" / "card.json").read_text())["instance"]["names"]
    assert "<script>alert(1)</script>" in names, "programs read it as it is"
