"""Contents of export folders, and refused exports."""

import hashlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import predict
from capnets.export import Engine, Stream, cells, export
from capnets.export.compare import compare
from capnets.export.onnx import fingerprint, graphs
from capnets.files import folders
from capnets.models import ModelSpec, build
from capnets.models.ensemble import Ensemble
from capnets.nn.cells import GRUCell
from capnets.runs import Run, RunConfig
from capnets.sets import Sets
from capnets.training.recipe import Recipe
from exported import EXPORTED

SETS = Sets.from_arrays([np.full((n, 3), n / 10, dtype=np.float32) for n in (4, 1, 7)])


def network(name="c-gru", seed=0, **settings):
    return build(name, seed=seed, **{"in_features": 3, "hidden": 8} | settings).eval()


def finished_run(folder, **data):
    spec = ModelSpec("c-gru", in_features=3, hidden=8, inputs="standardize")
    run = Run.create(folder, RunConfig(spec, Recipe(), seed=5, data=data))
    run.write_weights(spec.build(1))
    run.finish({"valid": {"mse": 0.25}, "epochs": 3})
    return run


@pytest.mark.parametrize("name", EXPORTED)
def test_every_network_is_written_and_read_again(tmp_path, name):
    model = network(name, outputs=2)
    card = export(model, tmp_path / "out")
    assert card.difference["largest"] < 1e-5
    np.testing.assert_allclose(
        Engine(tmp_path / "out").predict(SETS), predict(model, SETS), rtol=1e-4, atol=1e-5
    )


def test_files_and_card(tmp_path):
    card = export(network(), tmp_path / "out")
    files = {p.name for p in (tmp_path / "out").iterdir()}
    graphs = {"sets.onnx", "step.onnx", "chunk.onnx"}
    assert files == graphs | {"card.json", "manifest.json", "README.md"}
    written = json.loads((tmp_path / "out" / "card.json").read_text())
    assert written == card.to_dict()
    assert written["network"]["fingerprint"] == fingerprint(network())
    assert written["instance"] == {"shape": [3], "smallest": None, "names": None, "made": None}
    assert written["network"]["state"] == {"features": 8, "type": "float32"}
    assert {"onnx", "onnxruntime", "torch", "capnets"} <= set(written["versions"])
    for graph in written["graphs"].values():
        data = (tmp_path / "out" / graph["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == graph["sha256"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_code_on_the_page_runs(tmp_path):
    for name, settings in (("c-gru", {}), ("deepset", {"inputs": "pictures"})):
        export(network(name, **settings), tmp_path / name)
        page = (tmp_path / name / "README.md").read_text()
        (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        done = subprocess.run(
            [sys.executable, "-c", code + "\nprint(prediction.shape, added_values.shape)"],
            cwd=tmp_path / name, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "(2, 1) (2, 5, 1)\n"


def test_a_run_tells_its_story(tmp_path):
    schema = {
        "columns": {"set": "basket", "target": ["worth"]},
        "features": [{"name": "price"}, {"name": "kind", "categories": ["a", "b"]}],
    }
    run = finished_run(tmp_path / "run", schema=schema)
    card = export(tmp_path / "run", tmp_path / "out")
    assert card.instance["names"] == ["price", "kind=a", "kind=b"]
    assert card.prediction["names"] == ["worth"]
    assert card.metrics == run.metrics
    assert card.network["settings"] == run.config.model.to_dict()
    assert card.training["seed"] == 5
    assert card.training["data"] == run.config.to_dict()["data"]
    other = finished_run(tmp_path / "other", task="another")
    assert (
        export(other, tmp_path / "out2").training["data_fingerprint"]
        != card.training["data_fingerprint"]
    )
    page = (tmp_path / "out" / "README.md").read_text()
    for word in ("price, kind=a, kind=b", "worth", "| valid mse | 0.25 |", "Seed 5"):
        assert word in page
    np.testing.assert_allclose(
        Engine(tmp_path / "run").predict(SETS), predict(run.model, SETS), rtol=1e-5
    )
    assert len(Stream(run)) == 0


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        ("none", "the pixels of an image of digits"),
        ("patches", "an image of digits after the embedding `patches`"),
        ("minilm", "a sentence of digits as the vector"),
    ],
)
def test_what_stays_outside_is_said(tmp_path, embedding, words):
    finished_run(tmp_path / "run", task={"source": "digits", "embedding": embedding})
    card = export(tmp_path / "run", tmp_path / "out")
    assert card.instance["made"].startswith(words)
    assert f"An instance is {words}" in (tmp_path / "out" / "README.md").read_text()


def test_how_small_pictures_may_be_is_said(tmp_path):
    export(network("c-gru", inputs="pictures"), tmp_path / "out")
    assert "Pictures of at least 4 x 4" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_networks_of_other_types_are_written(tmp_path, dtype):
    card = export(network("c-potential").to(dtype), tmp_path / "out")
    assert card.network["state"]["type"] == "float64"
    assert len(Stream(tmp_path / "out").push(np.ones((2, 3)))) == 2


@pytest.mark.parametrize("source", [None, 42, SETS])
def test_what_is_no_network_is_not_written(tmp_path, source):
    with pytest.raises(InputError, match="a run or a network can be exported"):
        export(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("loss", "outputs", "classes", "words"),
    [
        ("logistic", 1, ["no", "yes"], "logit of class yes against no"),
        ("softmax", 3, ["a", "b", "c"], "logits of the classes a, b, c; their softmax"),
        ("logistic", 2, [0, 1], "sets x 2, logits"),
        ("squared", 1, None, "sets x 1, in the unit of the label"),
    ],
)
def test_logits_are_labelled(tmp_path, loss, outputs, classes, words):
    spec = ModelSpec("c-gru", in_features=3, hidden=8, outputs=outputs)
    labels = {"classes": classes} if classes else None
    config = RunConfig(spec, Recipe(), seed=0, data={"labels": labels, "orders": 8}, loss=loss)
    run = Run.create(tmp_path / "run", config)
    run.write_weights(spec.build(0))
    run.finish({})
    assert export(run, tmp_path / "out").prediction["classes"] == classes
    page = (tmp_path / "out" / "README.md").read_text()
    assert words in page
    assert "means over 8 orders" in page


def test_an_ensemble_is_written(tmp_path):
    model = Ensemble([network(seed=k) for k in range(2)])
    export(model, tmp_path / "out")
    stream = Stream(tmp_path / "out")
    values = stream.push(SETS[2])
    assert stream.prediction == pytest.approx(float(predict(model, SETS)[2]), rel=1e-5)
    assert values.shape == (7,)


# Refused ----------------------------------------------------------------------------------------


def wrong_gates(module, g, e, state):
    weights = cells._torch_weights(module.gru, gates=[0, 1, 2])
    before = [cells._first(g, state)]
    z, last = cells._recurrent("GRU", g, e, weights, before, linear_before_reset=1)
    return z, cells._squeeze(g, last)


@pytest.fixture
def broken_gru():
    right = cells.cell.dispatch(GRUCell)
    cells.cell.register(GRUCell, wrong_gates)
    yield
    cells.cell.register(GRUCell, right)


@pytest.mark.parametrize("name", ["gru", "c-gru"])
def test_a_wrong_graph_is_not_written(tmp_path, broken_gru, name):
    with pytest.raises(InputError, match=r"differs by .* units .* nothing was written"):
        export(network(name), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sets", "step", "chunk"])
def test_every_graph_is_compared(kind):
    mixed = graphs(network()) | {kind: graphs(network(seed=1))[kind]}
    with pytest.raises(InputError, match=f"graph `{kind}` differs"):
        compare(network(), mixed)


def test_a_slight_difference_is_enough():
    model = network()
    original = graphs(model)
    with torch.no_grad():
        model.final.bias += 3e-4
    with pytest.raises(InputError, match="differs"):
        compare(model, original)


def test_tolerance_scales_with_the_unit():
    model = network()
    with torch.no_grad():
        model.unit.mul_(1e-6)
    original = graphs(model)
    with torch.no_grad():
        model.final.bias += 0.01  # 1e-8 of label, but a hundredth of a unit
    with pytest.raises(InputError, match="differs"):
        compare(model, original)


def test_real_sets_are_tried_too():
    model = network()
    assert compare(model, graphs(model), sets=SETS) < 1e-5
    far = Sets.from_arrays([np.full((2, 3), np.nan, dtype=np.float32)])
    with pytest.raises(InputError, match="nan units"):
        compare(model, graphs(model), sets=far)


def test_nothing_is_replaced_without_being_asked(tmp_path):
    export(network(), tmp_path / "out")
    before = (tmp_path / "out" / "sets.onnx").read_bytes()
    with pytest.raises(InputError, match=r"force=True \(--force\) replaces it"):
        export(network(seed=1), tmp_path / "out")
    assert (tmp_path / "out" / "sets.onnx").read_bytes() == before
    export(network("deepset"), tmp_path / "out", force=True)
    assert {p.name for p in (tmp_path / "out").glob("*.onnx")} == {"sets.onnx", "predict.onnx"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_is_no_export_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for name in ("photos", "file"):
        for force in (False, True):
            with pytest.raises(InputError, match="is no export"):
                export(network(), tmp_path / name, force=force)
    assert (tmp_path / "photos" / "one.jpg").read_text() == "dear"
    (tmp_path / "empty").mkdir()
    export(network(), tmp_path / "empty")


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    export(network(), tmp_path / "out")
    before = (tmp_path / "out" / "sets.onnx").read_bytes()

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, "_exchange", full)
    with pytest.raises(InputError, match=r"No space left .* unchanged"):
        export(network(seed=1), tmp_path / "out", force=True)
    assert (tmp_path / "out" / "sets.onnx").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_folder_that_is_not_a_run(tmp_path):
    with pytest.raises(InputError, match="is not a run"):
        export(tmp_path, tmp_path / "out")


def test_without_onnxruntime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    with pytest.raises(InputError, match=r"onnxruntime is not installed: `pip install 'capnets\["):
        export(network(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_nothing_is_exported_but_exports_run(tmp_path):
    export(network(), tmp_path / "out")
    code = f"""
import sys
sys.modules["onnx"] = None
from capnets.errors import InputError
from capnets.export import Stream, export
from capnets.models import build
print(Stream({str(tmp_path / "out")!r}).push([1.0, 2.0, 3.0]).shape)
try:
    export(build("c-gru"), {str(tmp_path / "new")!r})
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shape, message = done.stdout.splitlines()
    assert shape == "(1,)"
    assert message.startswith("onnx is not installed: `pip install 'capnets[onnx]'`")
    assert not (tmp_path / "new").exists()
