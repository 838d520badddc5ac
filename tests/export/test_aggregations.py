"""Aggregations and baselines outside torch: graphs, engines and streams."""

import numpy as np
import pytest
import torch

from capnets.evaluate import added_values, predict
from capnets.export.compare import compare
from capnets.export.engine import Engine
from capnets.export.onnx import graphs
from capnets.export.stream import Stream
from capnets.export.streams import Streams
from capnets.models import AGGREGATIONS, build
from capnets.sets import Sets

PARTS = [(a, b) for a in AGGREGATIONS for b in ("none", "learned")]


def started(name="c-gru", *, aggregation="mean", baseline="learned", outputs=2, **settings):
    """A network whose parts are all away from 0."""
    model = build(
        name, in_features=3, hidden=8, outputs=outputs, activation="identity", seed=0,
        aggregation=aggregation, baseline=baseline, **settings,
    )  # fmt: skip
    level = torch.linspace(0.3, 0.6, outputs)
    model.start(unit=torch.full((outputs,), 0.5), label=level, size=4.0)
    with torch.no_grad():
        model.final.weight.add_(0.2)
        for name, parameter in model.named_parameters():
            if name.endswith("log_prior"):
                parameter.fill_(0.7)
    return model


def sets_with_an_empty_one():
    draw = np.random.default_rng(0)
    return Sets.from_arrays([draw.normal(size=(n, 3)) for n in (4, 0, 1, 7, 0)])


@pytest.mark.parametrize(("aggregation", "baseline"), PARTS)
@pytest.mark.parametrize("name", ["c-lstm", "c-deepset"])
def test_graphs_compute_what_the_network_does(name, aggregation, baseline):
    model = started(name, aggregation=aggregation, baseline=baseline)
    built = graphs(model)
    assert {"sets", "step", "chunk"} <= set(built)
    assert compare(model, built) < 1e-5


@pytest.mark.parametrize("aggregation", ["mean+sum", "any"])
@pytest.mark.parametrize("settings", [{"members": 2}, {"order": "worth"}])
def test_other_networks(aggregation, settings):
    model = build(
        "c-gru", in_features=3, hidden=8, activation="identity", seed=0, aggregation=aggregation,
        baseline="learned", **settings,
    )  # fmt: skip
    model.start(unit=torch.ones(1), label=torch.tensor([0.4]), size=4.0)
    assert compare(model, graphs(model)) < 1e-5


@pytest.mark.parametrize(("aggregation", "baseline"), PARTS)
def test_engine_and_empty_sets(aggregation, baseline):
    model, sets = (
        started(aggregation=aggregation, baseline=baseline),
        sets_with_an_empty_one(),
    )
    engine = Engine(model)
    assert engine.additive
    np.testing.assert_allclose(engine.baseline, model.baseline.detach(), rtol=1e-6)
    np.testing.assert_allclose(engine.predict(sets), predict(model, sets), atol=1e-6)
    np.testing.assert_allclose(engine.added_values(sets), added_values(model, sets), atol=1e-6)
    nothing = engine.predict([np.zeros((0, 3))] * 2)
    np.testing.assert_allclose(nothing, model.baseline.detach().expand(2, 2), rtol=1e-6)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_streams(aggregation, tmp_path):
    """A stream begins at the baseline; saved, restored and cut anywhere it gives the same."""
    model = started(aggregation=aggregation, outputs=1)
    x = np.random.default_rng(1).normal(size=(50, 3)).astype("f4")
    whole = Sets.from_arrays([x])
    stream = Stream(model)
    assert stream.prediction == pytest.approx(model.baseline.item())
    values = [stream.push(x[:1]), stream.push(x[1:30])]
    stream.state.save(tmp_path / "state")
    stream = Stream(model, state=tmp_path / "state")
    values.append(stream.push(x[30:]))
    np.testing.assert_allclose(np.concatenate(values), added_values(model, whole), atol=1e-6)
    assert stream.prediction == pytest.approx(float(predict(model, whole)[0]), abs=1e-5)
    stream.reset()
    assert stream.prediction == pytest.approx(model.baseline.item())
    many = Streams(model, count=2)
    many.push(np.stack([x[:5], x[5:10]]))
    np.testing.assert_allclose(
        many.predictions, predict(model, Sets.from_arrays([x[:5], x[5:10]])), atol=1e-6
    )


def test_long_streams_keep_their_digits():
    """After 2^25 instances the weights still grow; in float32 they would not."""
    model = started(outputs=1)
    stream = Stream(model)
    stream.push(np.zeros((1, 3)))
    state = stream.state
    weight, many = state.memory[0, -1], 2.0**25
    state.memory[0, -2:] *= many
    stream = Stream(model, state=state)
    stream.push(np.zeros((1, 3)))
    assert stream.state.memory[0, -1] == pytest.approx(weight * (many + 1), rel=1e-9)
