"""Graphs give the results of their networks at every size, with any padding."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from capnets.errors import InputError
from capnets.export.graph import OPSET, Graph
from capnets.export.layers import layer
from capnets.export.onnx import PORTS, SMALLEST, feature_shape, fingerprint, graphs
from capnets.export.session import no_memory
from capnets.models import build
from capnets.models.base import SteppingModel
from capnets.models.capacity import ACTIVATIONS, CapacityNetwork
from capnets.models.ensemble import Ensemble
from capnets.models.sorted import SortedNetwork
from capnets.nn.cells import Cell, GRUCell
from capnets.nn.context import ContextCell
from capnets.nn.encoders import ConvEncoder, Standardize, mlp
from exported import EXPORTED
from streaming import OTHERS, STEPPING

MEAN, DEVIATION = torch.linspace(-5.0, 5.0, 6), torch.linspace(0.1, 20.0, 6)


def small(name="c-gru", *, seed=0, **settings):
    """A network with a unit that is not 1, and features that are not standard."""
    model = build(name, seed=seed, **{"in_features": 6, "hidden": 8, "layers": 2} | settings).eval()
    with torch.no_grad():
        model.unit.copy_(torch.linspace(2.0, 7.0, model.outputs))
    if isinstance(model.inputs, Standardize):
        model.inputs.learn(MEAN, DEVIATION)
    return model


def sessions(model):
    return {
        name: onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        for name, graph in graphs(model).items()
    }


def draw(sets, size, *features, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sets, size, *features, generator=generator)
    sizes = torch.randint(1, size + 1, (sets, 1), generator=generator)
    return x, torch.arange(size) < sizes


def run(session, x, mask):
    names = [output.name for output in session.get_outputs()]
    feed = {"instances": x.numpy(), "mask": mask.numpy()}
    return dict(zip(names, session.run(names, feed), strict=True))


def assert_same(model, opened, x, mask):
    with torch.no_grad():
        wanted = {"prediction": model(x, mask), "added_values": model.added_values(x, mask)}
    for name in {"sets", "predict"} & set(opened):
        found = run(opened[name], x, mask)
        assert set(found) <= set(wanted)
        for output, values in found.items():
            assert values.shape == wanted[output].shape
            np.testing.assert_allclose(values, wanted[output], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inputs", ["none", "standardize", "pictures"])
@pytest.mark.parametrize("name", EXPORTED)
def test_sets_of_any_number_and_size(name, inputs):
    model = small(name, inputs=inputs, outputs=2)
    opened = sessions(model)
    for sets, size in ((1, 1), (4, 1), (1, 9), (3, 5), (2, 23)):
        features = (1, 12 + size, 15) if inputs == "pictures" else (6,)
        x, mask = draw(sets, size, *features)
        x = x * DEVIATION + MEAN if inputs == "standardize" else x
        assert_same(model, opened, x, mask)
        assert_same(model, opened, x, torch.ones_like(mask))


@pytest.mark.parametrize("name", ["c-gru", "attention"])
def test_principal_components(name):
    model = small(name, inputs="project", in_features=300)
    assert feature_shape(model) == (300,)
    rows = torch.randn(900, 300, generator=torch.Generator().manual_seed(0))
    model.inputs.learn(rows, seed=0)
    x, mask = draw(3, 5, 300)
    assert_same(model, sessions(model), x, mask)


@pytest.mark.parametrize("by", ["worth", 2])
@pytest.mark.parametrize("name", ["c-gru", "c-deepset", "lstm"])
def test_networks_that_sort(name, by):
    """Ties are read by all features, padding last, in graphs too; so no order matters."""
    model = small(name, inputs="standardize", order=by)
    opened = sessions(model)
    for sets, size in ((1, 1), (3, 5), (2, 23)):
        x, mask = draw(sets, size, 6)
        x = (x * DEVIATION + MEAN).round()
        x[:, 0] = x[:, -1]
        x[:, ::2, 2] = x[:, :1, 2].clone()
        assert_same(model, opened, x, mask)
        full = torch.ones_like(mask)
        assert_same(model, opened, x, full)
        there, back = (run(opened["predict"], s, full)["prediction"] for s in (x, x.flip(1)))
        np.testing.assert_allclose(there, back, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e30])
@pytest.mark.parametrize("name", EXPORTED)
def test_padding_does_not_matter(name, garbage):
    model = small(name)
    x, mask = draw(6, 7, 6)
    spoiled = x.masked_fill(~mask[..., None], garbage)
    for name_, session in sessions(model).items():
        if name_ in {"sets", "predict"}:
            for output, values in run(session, spoiled, mask).items():
                np.testing.assert_array_equal(values, run(session, x, mask)[output])


@pytest.mark.parametrize("name", EXPORTED)
def test_a_set_does_not_depend_on_its_neighbours(name):
    model = small(name)
    x, mask = draw(5, 8, 6)
    session = sessions(model)["sets"]
    together = run(session, x, mask)
    for k, size in enumerate(mask.sum(1).tolist()):
        alone = run(session, x[k : k + 1, :size], torch.ones(1, size, dtype=torch.bool))
        np.testing.assert_allclose(alone["prediction"][0], together["prediction"][k], rtol=1e-4)
        np.testing.assert_allclose(
            alone["added_values"][0], together["added_values"][k, :size], rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("name", EXPORTED)
def test_empty_sets_are_worth_nothing_or_unknown(name):
    model = small(name)
    x, mask = draw(3, 4, 6)
    mask[1] = False
    found = run(sessions(model)["sets"], x, mask)
    assert (found["added_values"][1] == 0).all()
    if model.additive:
        assert (found["prediction"][1] == 0).all()
    else:
        assert np.isnan(found["prediction"][1]).all()
    assert np.isfinite(found["prediction"][[0, 2]]).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", STEPPING)
def test_steps_and_chunks(name, activation):
    model = small(name, activation=activation, outputs=3, inputs="standardize")
    with torch.no_grad():
        model.final.bias.copy_(torch.tensor([-20.0, 0.0, 1.0]))  # so that signs differ
    opened = sessions(model)
    x, _ = draw(4, 9, 6)
    state = model.initial_state(4)
    by_step = by_chunk = no_memory(opened["step"], 4)
    assert by_step.shape == state.shape
    assert not by_step.any()
    with torch.no_grad():
        for k in range(9):
            value, state = model.step(x[:, k], state)
            found, by_step = opened["step"].run(
                None, {"instance": x[:, k].numpy(), "state": by_step}
            )
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(by_step, state, rtol=1e-4, atol=1e-5)
        values = []
        for piece in (x[:, :2], x[:, 2:3], x[:, 3:]):
            some, by_chunk = opened["chunk"].run(
                None, {"instances": piece.numpy(), "state": by_chunk}
            )
            values.append(some)
        wanted = model.added_values(x)
    np.testing.assert_allclose(np.concatenate(values, 1), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_chunk, state, rtol=1e-4, atol=1e-5)
    if activation == "identity":
        assert (wanted < 0).any()


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (("c-gru", "c-lstm"), {"sets", "step", "chunk"}),
        (("c-gru", "c-potential", "c-deepset"), {"sets", "predict", "step", "chunk"}),
        (("c-gru", "deepset", "set-transformer"), {"sets", "predict"}),
    ],
)
def test_ensembles(names, kinds):
    model = Ensemble([small(n, seed=k, inputs="standardize") for k, n in enumerate(names)]).eval()
    opened = sessions(model)
    assert set(opened) == kinds
    x, mask = draw(3, 6, 6)
    assert_same(model, opened, x, mask)
    if "step" in kinds:
        state = model.initial_state(3)
        with torch.no_grad():
            value, after = model.step(x[:, 0], state)
        nothing = no_memory(opened["step"], 3)
        found = opened["step"].run(None, {"instance": x[:, 0].numpy(), "state": nothing})
        np.testing.assert_allclose(found[0], value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1], after, rtol=1e-4, atol=1e-5)


def test_a_cell_that_reads_predecessors_as_a_set():
    torch.manual_seed(0)
    model = CapacityNetwork(encoder=mlp(6, 5), cell=ContextCell(5, 4), decoder=mlp(9, 8, 2)).eval()
    model.cell.start(size=40)
    opened = sessions(model)
    for sets, size in ((1, 1), (3, 7), (2, 40)):
        x, mask = draw(sets, size, 6)
        assert_same(model, opened, x, mask)
        with torch.no_grad():
            wanted = model.added_values(x)
        state, values = no_memory(opened["chunk"], sets), []
        for piece in np.array_split(x.numpy(), min(3, size), axis=1):
            some, state = opened["chunk"].run(None, {"instances": piece, "state": state})
            values.append(some)
        np.testing.assert_allclose(np.concatenate(values, 1), wanted, rtol=1e-4, atol=1e-4)
        state = no_memory(opened["step"], sets)
        for k in range(size):
            value, state = opened["step"].run(None, {"instance": x[:, k].numpy(), "state": state})
            np.testing.assert_allclose(value, wanted[:, k], rtol=1e-4, atol=1e-4)


def test_pictures_may_be_read_by_the_encoder():
    model = CapacityNetwork(
        encoder=nn.Sequential(ConvEncoder(8), nn.ReLU()), cell=GRUCell(8, 4), decoder=mlp(4, 1)
    ).eval()
    x, mask = draw(2, 3, 1, 9, 31)
    assert_same(model, sessions(model), x, mask)


@pytest.mark.parametrize("height", range(4, 30))
def test_adaptive_pooling_of_every_size(height):
    pool = nn.AdaptiveMaxPool2d((4, 3))
    g = Graph()
    g.output("y", layer(pool, g, g.input("x", ("rows", 2, "h", "w"))), ("rows", 2, 4, 3))
    session = onnxruntime.InferenceSession(g.model("pool", {}).SerializeToString())
    x = torch.randn(3, 2, height, 33 - height)
    np.testing.assert_array_equal(session.run(None, {"x": x.numpy()})[0], pool(x))


def test_predictions_cost_no_more_than_they_must():
    """A graph for predictions alone, where they are known without added values."""
    for name in EXPORTED:
        apart = "predict" in graphs(small(name))
        assert apart == (name in OTHERS or name == "c-potential")
    model = small("c-potential", outputs=2)
    x, mask = draw(4, 6, 6)
    mask[2] = False
    predict = sessions(model)["predict"]
    nodes = onnx.load_from_string(graphs(model)["predict"]).graph.node
    assert not {"CumSum", "Loop"} & {node.op_type for node in nodes}
    found = run(predict, x.masked_fill(~mask[..., None], np.nan), mask)["prediction"]
    with torch.no_grad():
        np.testing.assert_allclose(found, model(x, mask), rtol=1e-5, atol=1e-5)
    assert (found[2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_networks_of_other_types(dtype):
    """Graphs are float32, whatever the precision of the network."""
    model = small().to(dtype)
    x, mask = draw(3, 5, 6)
    assert_same(small().to(dtype).float(), sessions(model), x, mask)
    assert fingerprint(model) == fingerprint(small().to(dtype).float())
    assert model.unit.dtype == dtype


@pytest.mark.parametrize("name", EXPORTED)
def test_graphs_say_what_they_are(name):
    model = small(name)
    for kind, graph in graphs(model).items():
        proto = onnx.load_from_string(graph)
        onnx.checker.check_model(proto, full_check=True)
        assert [o.version for o in proto.opset_import] == [OPSET]
        assert [i.name for i in proto.graph.input] == PORTS[kind][0]
        assert [o.name for o in proto.graph.output] == PORTS[kind][1]
        assert {p.key: p.value for p in proto.metadata_props} == {
            "capnets.fingerprint": fingerprint(model),
            "capnets.additive": str(model.additive).lower(),
            "capnets.streams": str(isinstance(model, SteppingModel)).lower(),
        }
        for port in (*proto.graph.input, *proto.graph.output):
            dims = port.type.tensor_type.shape.dim
            assert dims[0].dim_param == "sets"
            if port.name in {"instances", "mask", "added_values"}:
                assert dims[1].dim_param == "size"


def test_same_network_same_bytes():
    assert graphs(small(seed=3)) == graphs(small(seed=3))
    assert graphs(small(seed=3)) != graphs(small(seed=4))


def test_fingerprint_is_of_everything_that_counts():
    model = small()
    marks = {
        fingerprint(model),
        fingerprint(small(activation="identity")),
        fingerprint(small(seed=1)),
    }
    with torch.no_grad():
        model.unit.mul_(2)
    assert len(marks | {fingerprint(model)}) == 4


def test_fingerprint_is_of_settings_that_are_no_weights():
    reader = small()
    by = [fingerprint(SortedNetwork(reader, by=by)) for by in (0, 1, "worth")]
    assert len({*by, fingerprint(reader)}) == 4
    transformer = small("set-transformer")
    before = fingerprint(transformer)
    assert before == fingerprint(small("set-transformer"))
    transformer.pool.attend.heads = 2
    assert fingerprint(transformer) != before
    pictures = small(inputs="pictures")
    before = fingerprint(pictures)
    pictures.inputs.convolutions[2].padding = (2, 2)
    assert fingerprint(pictures) != before


def test_graphs_of_pictures_say_how_small_they_may_be():
    model = small(inputs="pictures")
    for graph in graphs(model).values():
        about = {p.key: p.value for p in onnx.load_from_string(graph).metadata_props}
        assert about["capnets.smallest"] == str(SMALLEST)
    model(torch.zeros(1, 1, 1, SMALLEST, SMALLEST))
    with pytest.raises(InputError, match="at least"):
        model(torch.zeros(1, 1, 1, SMALLEST - 1, SMALLEST))


def test_the_network_is_left_as_it_was():
    model = small().train()
    graphs(model)
    assert model.training


def test_modules_without_a_graph_are_named():
    class Strange(nn.Module):
        def forward(self, x):
            return x

    class Memory(Cell):
        in_features = out_features = state_features = 8

        def forward(self, e, state=None):
            return e, e[:, -1]

    cases = {
        "Strange": {"encoder": nn.Sequential(nn.Linear(6, 8), Strange()), "cell": GRUCell(8, 8)},
        "Memory": {"encoder": mlp(6, 8), "cell": Memory()},
    }
    for name, parts in cases.items():
        network = CapacityNetwork(**parts, decoder=mlp(8, 1))
        network.cell.initial_state = lambda sets: torch.zeros(sets, 8)
        with pytest.raises(InputError, match=f"type {name} yet"):
            graphs(network)
