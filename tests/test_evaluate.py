"""Predictions of a set do not depend on the other sets of a batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import added_values, evaluate, order_sensitivity, predict
from capnets.models import MODELS, build
from capnets.sets import Sets


def ragged(sets=37, *, features=5, outputs=1, seed=0) -> Sets:
    draw = np.random.default_rng(seed)
    arrays = [draw.normal(size=(n, features)) for n in draw.integers(1, 9, size=sets)]
    y = draw.normal(size=sets if outputs == 1 else (sets, outputs))
    return Sets.from_arrays(arrays, y=y)


def shared_pool() -> Sets:
    """Sets that use rows of one table several times, in no order."""
    draw = np.random.default_rng(1)
    pool = draw.normal(size=(20, 5)).astype(np.float32)
    return Sets(pool, draw.integers(20, size=60), np.array([0, 10, 11, 30, 60]), np.ones(4))


def network(name="c-gru", **settings):
    return build(name, **{"in_features": 5, "hidden": 8, "seed": 0, **settings}).eval()


@torch.no_grad()
def one_by_one(model, sets, method) -> np.ndarray:
    """The slow way: each set in a batch of its own."""
    alone = [getattr(model, method)(torch.from_numpy(sets[k])[None])[0] for k in range(len(sets))]
    return np.concatenate([values.numpy().reshape(-1, model.outputs) for values in alone])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sets", [ragged(), shared_pool()], ids=["ragged", "shared"])
class TestAgainstLoops:
    def test_predict(self, name, sets):
        model = network(name)
        expected = one_by_one(model, sets, "forward")[:, 0]
        for size in (1, 7, 1000):
            found = predict(model, sets, batch_size=size)
            assert found.shape == (len(sets),)
            np.testing.assert_allclose(found, expected, atol=2e-6)

    def test_added_values(self, name, sets):
        model = network(name)
        expected = one_by_one(model, sets, "added_values")[:, 0]
        for size in (1, 7, 1000):
            found = added_values(model, sets, batch_size=size)
            assert found.shape == sets.index.shape
            np.testing.assert_allclose(found, expected, atol=3e-6)


class TestPredict:
    def test_several_outputs(self):
        model, sets = network(outputs=3), ragged(outputs=3)
        np.testing.assert_allclose(
            predict(model, sets), one_by_one(model, sets, "forward"), atol=2e-6
        )
        values = added_values(model, sets)
        assert values.shape == (len(sets.index), 3)
        sums = np.add.reduceat(values, sets.offsets[:-1])
        np.testing.assert_allclose(sums, predict(model, sets), atol=1e-5)

    def test_no_dropout(self):
        model = network(inputs="standardize", dropout=0.5).train()
        assert np.array_equal(predict(model, ragged()), predict(model, ragged()))

    def test_no_gradients_are_kept(self):
        model = network()
        predict(model, ragged())
        added_values(model, ragged())
        assert all(p.grad is None for p in model.parameters())

    def test_double_precision(self):
        model, sets = network(), ragged()
        single = predict(model, sets)
        np.testing.assert_allclose(predict(model.double(), sets), single, atol=1e-5)

    def test_empty_sets(self):
        sets = Sets.from_arrays([np.ones((2, 5)), np.empty((0, 5)), np.zeros((1, 5))])
        assert predict(network(), sets)[1] == 0
        assert len(added_values(network(), sets)) == 3
        with pytest.raises(InputError, match="cannot predict a set without instances"):
            predict(network("gru"), sets)

    def test_zero_sets(self):
        assert predict(network(), ragged()[:0]).shape == (0,)
        assert added_values(network(), ragged()[:0]).shape == (0,)

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("use", [predict, added_values])
    def test_not_a_number(self, wrong, use):
        sets = ragged()
        sets.instances[sets.rows(20)[0], 3] = wrong
        with pytest.raises(InputError, match=r"set 20 has the value .* in column 3"):
            use(network(), sets)
        assert np.isfinite(use(network(), sets[:20])).all(), "no set uses that row"

    def test_large_numbers_are_numbers(self):
        sets = ragged()
        sets.instances[:] = 3e38
        predict(network(), sets)

    def test_wrong_width(self):
        with pytest.raises(InputError, match="built for 5 features"):
            predict(network(), ragged(features=4))

    def test_batch_size(self):
        with pytest.raises(InputError, match="batch_size must be at least 1, not 0"):
            predict(network(), ragged(), batch_size=0)


class TestEvaluate:
    def test_by_hand(self):
        model, sets = network(), ragged()
        p, y = one_by_one(model, sets, "forward")[:, 0], sets.y
        expected = np.zeros(len(sets.index))
        values = one_by_one(model, sets, "added_values")[:, 0]
        found = evaluate(model, sets, expected=expected)
        assert found["mse"] == pytest.approx(np.mean((p - y) ** 2), rel=1e-5)
        assert found["rmse"] == pytest.approx(found["mse"] ** 0.5)
        assert found["mae"] == pytest.approx(np.mean(np.abs(p - y)), rel=1e-5)
        assert found["added_value_error"] == pytest.approx(np.mean(np.abs(values)), rel=1e-5)

    def test_exact(self):
        model, sets = network(), ragged()
        sets = replace(sets, y=predict(model, sets))
        found = evaluate(model, sets, expected=added_values(model, sets))
        assert (found["mse"], found["r2"], found["accuracy"]) == (0, 1, 1)
        assert found["added_value_error"] == 0

    def test_only_labels_of_tasks_are_whole_numbers(self):
        model, sets = network(), ragged()
        assert "accuracy" in evaluate(model, sets, expected=np.zeros(len(sets.index)))
        assert "accuracy" not in evaluate(model, sets)

    def test_without_labels(self):
        for use in (evaluate, order_sensitivity):
            with pytest.raises(InputError, match="no labels to compare"):
                use(network(), replace(ragged(), y=None))


class TestOrderSensitivity:
    @pytest.mark.parametrize("name", [n for n in MODELS if not build(n, in_features=5).ordered])
    def test_order_free(self, name):
        found = order_sensitivity(network(name), ragged())
        assert found["spread"] == pytest.approx(0, abs=1e-6)
        assert found["deviation"] == pytest.approx(0, abs=1e-5)

    def test_by_hand(self):
        """Against all draws written out, with the same random orders."""
        model, sets = network("gru"), ragged()
        generator = torch.Generator().manual_seed(3)
        orders = [sets.shuffled(generator) for _ in range(4)]
        each = np.stack([one_by_one(model, s, "forward")[:, 0] for s in orders])
        errors = ((each - sets.y) ** 2).mean(1)
        found = order_sensitivity(model, sets, orders=4, seed=3)
        assert found["mse"] == pytest.approx(errors, rel=1e-5)
        assert found["mean"] == pytest.approx(errors.mean(), rel=1e-5)
        assert found["median"] == pytest.approx(np.median(errors), rel=1e-5)
        assert found["deviation"] == pytest.approx(errors.std(), rel=1e-2)
        assert found["spread"] == pytest.approx(each.std(0).mean(), rel=1e-4)
        assert found["spread"] > 0
        averaged = ((each.mean(0) - sets.y) ** 2).mean()
        assert found["averaged"] == pytest.approx(averaged, rel=1e-5)
        assert found["averaged"] < found["mean"]  # a mean is never worse than its parts on average

    def test_seed(self):
        model, sets = network("gru"), ragged()
        one, two, other = (order_sensitivity(model, sets, seed=s) for s in (0, 0, 1))
        assert one == two
        assert one != other

    def test_one_order_is_no_comparison(self):
        with pytest.raises(InputError, match="orders must be at least 2"):
            order_sensitivity(network(), ragged(), orders=1)
