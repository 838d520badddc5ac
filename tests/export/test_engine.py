"""ONNX Runtime gives the results of torch and rejects the same inputs."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.evaluate import added_values, predict
from capnets.explain import Orders
from capnets.export import Engine, export
from capnets.export import engine as engines
from capnets.learn.averaging import mean_added_values, mean_prediction
from capnets.models import build
from capnets.sets import Sets
from exported import EXPORTED


def network(name="c-gru", **settings):
    return build(name, **{"seed": 0, "in_features": 3, "hidden": 8} | settings).eval()


def ragged(sizes, features=(3,), seed=0):
    rng = np.random.default_rng(seed)
    return Sets.from_arrays([rng.normal(size=(n, *features)).astype(np.float32) for n in sizes])


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", EXPORTED)
def test_the_same_as_torch(name, outputs):
    model, sets = network(name, outputs=outputs), ragged([3, 1, 8, 8, 2, 19])
    engine = Engine(model)
    assert engine.additive == model.additive
    for found, wanted in (
        (engine.predict(sets), predict(model, sets)),
        (engine.added_values(sets), added_values(model, sets)),
    ):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("outputs", [1, 2])
def test_means_over_orders_are_those_of_estimators(outputs):
    model, sets = network(outputs=outputs), ragged([3, 1, 8, 8, 2, 19])
    engine = Engine(model)
    for found, wanted in (
        (engine.predict(sets, orders=6), mean_prediction(model, sets, Orders.random(6))),
        (engine.added_values(sets, orders=6), mean_added_values(model, sets, Orders.random(6))),
    ):
        np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(engine.predict(sets, orders=1), engine.predict(sets))


def test_many_batches_and_sets_larger_than_one(monkeypatch):
    monkeypatch.setattr(engines, "ROWS", 16)
    rng = np.random.default_rng(0)
    sets = ragged([*rng.integers(0, 9, size=50), 100, 17, 16])
    model = network()
    engine = Engine(model)
    np.testing.assert_allclose(engine.predict(sets), predict(model, sets), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        engine.added_values(sets), added_values(model, sets), rtol=1e-4, atol=1e-5
    )


def test_lists_of_arrays_and_shared_rows():
    engine = Engine(network())
    arrays = [np.ones((2, 3)), np.zeros((1, 3))]
    np.testing.assert_array_equal(engine.predict(arrays), engine.predict(Sets.from_arrays(arrays)))
    pool = np.eye(3, dtype=np.float32)
    shared = Sets(pool, np.array([2, 2, 0, 1]), np.array([0, 3, 4]))
    copied = Sets.from_arrays([pool[[2, 2, 0]], pool[[1]]])
    np.testing.assert_array_equal(engine.added_values(shared), engine.added_values(copied))


def test_pictures():
    model = network(inputs="pictures")
    for shape in ((1, 28, 28), (1, 9, 14)):
        sets = ragged([2, 3], shape)
        np.testing.assert_allclose(Engine(model).predict(sets), predict(model, sets), rtol=1e-4)


@pytest.mark.parametrize("shape", [(1, 3, 9), (1, 9, 3), (1, 0, 28), (1, 28, 0), (2, 9, 9)])
def test_pictures_that_the_network_refuses(shape):
    engine = Engine(network(inputs="pictures"))
    with pytest.raises(InputError, match="1 x height x width, of at least 4 x 4"):
        engine.predict([np.zeros((2, *shape))])
    assert np.isfinite(engine.predict([np.zeros((2, 1, 4, 4))])).all()


@pytest.mark.parametrize("orders", [0, -1, 2.5, "8"])
def test_orders_are_counted(orders):
    engine = Engine(network())
    for ask in (engine.predict, engine.added_values):
        with pytest.raises(InputError, match="whole number of at least 1"):
            ask(ragged([2]), orders=orders)


@pytest.mark.parametrize("source", [None, 42, np.ones(3), [1]])
def test_what_is_no_network(source):
    with pytest.raises(InputError, match="a network, a run, a fitted estimator or a folder"):
        Engine(source)


def test_estimators():
    estimator = SetRegressor("c-gru", members=1, epochs=1, hidden=4, orders=1, random_state=0)
    with pytest.raises(InputError, match="SetRegressor has no network yet; fit it first"):
        Engine(estimator)
    sets = [np.eye(n, 3, dtype=np.float32) for n in (1, 2, 3, 4) * 3]
    estimator.fit(sets, [float(len(x)) for x in sets])
    np.testing.assert_allclose(
        Engine(estimator).predict(sets), estimator.predict(sets), rtol=1e-4, atol=1e-5
    )


def test_empty_sets():
    sets = Sets(np.ones((3, 3), np.float32), np.arange(3), np.array([0, 0, 3, 3]))
    for name in ("c-gru", "c-potential"):
        assert Engine(network(name)).predict(sets)[[0, 2]].tolist() == [0, 0]
    nothing = Sets(np.ones((1, 3), np.float32), np.arange(0), np.array([0, 0]))
    assert Engine(network()).predict(nothing).tolist() == [0]
    assert Engine(network()).added_values(nothing).shape == (0,)
    with pytest.raises(InputError, match="set 0 has no instances"):
        Engine(network("gru")).predict(sets)


def test_no_sets_at_all():
    nothing = Sets(np.ones((1, 3), np.float32), np.arange(0), np.array([0]))
    for name in ("c-gru", "gru"):
        assert Engine(network(name)).predict(nothing).shape == (0,)


def test_bad_input():
    engine = Engine(network())
    with pytest.raises(InputError, match=r"shape 4 features, but this network reads 3 features"):
        engine.predict(ragged([2], (4,)))
    with pytest.raises(InputError, match="1 x 28 x 28"):
        engine.predict(ragged([2], (1, 28, 28)))
    sets = ragged([2, 5])
    sets.instances[4, 1] = np.nan
    with pytest.raises(InputError, match="nan"):
        engine.predict(sets)
    with pytest.raises(InputError, match="threads"):
        Engine(network(), threads=0)


def test_bad_folders(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        Engine(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a run"):
        Engine(tmp_path)
    export(network(), tmp_path / "a")
    export(network(seed=1), tmp_path / "b")
    for name in ("a", "b"):  # as earlier versions wrote them
        (tmp_path / name / "manifest.json").unlink()
    (tmp_path / "a" / "chunk.onnx").write_bytes((tmp_path / "b" / "chunk.onnx").read_bytes())
    with pytest.raises(InputError, match="chunk belongs to another network"):
        Engine(tmp_path / "a").session("chunk")
    (tmp_path / "b" / "sets.onnx").write_bytes(b"torn")
    with pytest.raises(InputError, match="cannot read the graph sets"):
        Engine(tmp_path / "b")
    (tmp_path / "b" / "sets.onnx").unlink()
    with pytest.raises(InputError, match=r"no sets\.onnx"):
        Engine(tmp_path / "b")
