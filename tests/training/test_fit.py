"""The loop: same bits, best weights, early stopping, clipping, weights, scaling, bad input."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from capnets.errors import InputError
from capnets.evaluate import predict
from capnets.models import build
from capnets.models.base import SetModel
from capnets.sets import Sets
from capnets.training.fit import Diverged, fit, measure
from capnets.training.losses import LOSSES
from capnets.training.recipe import Recipe

QUICK = Recipe(epochs=3, batch_size=50)
LONG = Recipe(epochs=25, batch_size=20, learning_rate=0.02)


def network(**settings) -> SetModel:
    return build("c-gru", **{"in_features": 4, "hidden": 8, "layers": 1, "seed": 0, **settings})


def bits(model: SetModel) -> bytes:
    return b"".join(v.numpy().tobytes() for v in model.state_dict().values())


def trained(make, *, seed=0, recipe=QUICK, **settings) -> SetModel:
    model = network(**settings)
    fit(model, make(), make(50, seed=1), recipe=recipe, seed=seed)
    return model


class TestSeeds:
    def test_same_seed_same_bits(self, make):
        assert bits(trained(make)) == bits(trained(make))

    def test_other_seed_other_bits(self, make):
        assert bits(trained(make)) != bits(trained(make, seed=1))

    def test_orders_have_the_seed_too(self, make):
        """With the start weights given, the seed still draws the order of sets and instances."""
        given = replace(QUICK, start="torch")
        assert bits(trained(make, recipe=given)) == bits(trained(make, recipe=given))
        assert bits(trained(make, recipe=given)) != bits(trained(make, recipe=given, seed=1))

    def test_dropout_and_the_search_for_a_rate_have_the_seed(self, make):
        settings = {"inputs": "standardize", "dropout": 0.3}
        recipe = replace(QUICK, learning_rate=None)
        torch.manual_seed(1)
        one = trained(make, recipe=recipe, **settings)
        torch.manual_seed(2)
        assert bits(one) == bits(trained(make, recipe=recipe, **settings))
        assert bits(one) != bits(trained(make, recipe=recipe, seed=3, **settings))

    def test_numbers_of_others_are_left_alone(self, make):
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        trained(make, recipe=replace(QUICK, learning_rate=None))
        assert torch.equal(torch.rand(3), expected)

    def test_more_epochs_begin_alike_under_a_constant_rate(self, make):
        constant = replace(QUICK, schedule="constant")
        one, two = network(), network()
        few = fit(one, make(), recipe=constant)
        many = fit(two, make(), recipe=replace(constant, epochs=5))
        assert [h["train"] for h in few] == [h["train"] for h in many[:3]]


class Watcher(torch.nn.Module):
    """Stands before a network and keeps what passes."""

    def __init__(self):
        super().__init__()
        self.seen: list[list[bytes]] = []

    def forward(self, x):
        if self.training:
            self.seen.append([row.numpy().tobytes() for row in x[0]])
        return x


def orders_seen(sets: Sets, *, reshuffle: bool) -> list[list[bytes]]:
    """The instances of the only set, as they reached the network in every epoch."""
    model = network()
    model.inputs = Watcher()
    fit(model, sets, sets, recipe=Recipe(epochs=6, reshuffle=reshuffle))
    return model.inputs.seen


class TestOrders:
    def test_fixed(self, make):
        sets = make(30).subset([int(np.argmax(make(30).sizes))])
        given = [row.tobytes() for row in sets[0]]
        assert orders_seen(sets, reshuffle=False) == [given] * 6

    def test_reshuffled(self, make):
        sets = make(30).subset([int(np.argmax(make(30).sizes))])
        given = [row.tobytes() for row in sets[0]]
        seen = orders_seen(sets, reshuffle=True)
        assert all(sorted(order) == sorted(given) for order in seen)
        assert len(set(map(tuple, seen))) > 1


class TestBest:
    RESTLESS = Recipe(epochs=12, batch_size=20, learning_rate=0.05, schedule="constant", clip=None)

    def test_weights_of_the_best_epoch(self, make):
        model, valid = network(), make(60, seed=1)
        history = fit(model, make(), valid, recipe=self.RESTLESS)
        errors = [h["valid"] for h in history]
        assert min(errors) < errors[-1], "the last epoch is the best: nothing is shown"
        assert measure(model, valid, LOSSES["squared"]) == min(errors)
        assert np.mean((predict(model, valid) - valid.y) ** 2) == pytest.approx(min(errors))

    def test_without_validation_the_last_epoch_counts(self, make):
        with_valid, without = network(), network()
        one = fit(with_valid, make(), make(60, seed=1), recipe=self.RESTLESS)
        two = fit(without, make(), recipe=self.RESTLESS)
        assert [h["train"] for h in one] == [h["train"] for h in two]
        assert [h["valid"] for h in two] == [None] * 12
        assert bits(with_valid) != bits(without)

    def test_early_stopping(self, make):
        full = fit(network(), make(), make(60, seed=1), recipe=self.RESTLESS)
        errors = [h["valid"] for h in full]
        patience = next(  # the shortest that ends before all epochs are done
            p for p in range(1, 12) if any(stop(errors[:n], p) for n in range(1, 12))
        )
        end = next(n for n in range(1, 12) if stop(errors[:n], patience))
        model = network()
        short = fit(
            model, make(), make(60, seed=1), recipe=replace(self.RESTLESS, patience=patience)
        )
        assert [h["valid"] for h in short] == errors[:end]
        assert measure(model, make(60, seed=1), LOSSES["squared"]) == min(errors[:end])

    def test_no_dropout_in_validation(self, make):
        """The error that is recorded is the one that the network has when it is used."""
        model, valid = network(inputs="standardize", dropout=0.5), make(60, seed=1)
        history = fit(model, make(), valid, recipe=QUICK)
        best = min(h["valid"] for h in history)
        assert np.mean((predict(model, valid) - valid.y) ** 2) == pytest.approx(best)
        assert not model.training


def stop(errors: list[float], patience: int) -> bool:
    return len(errors) - 1 - int(np.argmin(errors)) >= patience


def gradient_norms(make, recipe: Recipe) -> list[float]:
    norms: list[float] = []

    def look(optimizer, *_):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
        norms.append(float(torch.stack([g.norm() for g in grads]).norm()))

    hook = register_optimizer_step_pre_hook(look)
    try:
        fit(network(), make(), recipe=recipe)
    finally:
        hook.remove()
    return norms


def test_clipping(make):
    free = gradient_norms(make, replace(QUICK, clip=None))
    assert len(free) == 3 * 4, "three epochs of four batches"
    assert max(free) > 0.1
    clipped = gradient_norms(make, replace(QUICK, clip=0.1))
    assert max(clipped) == pytest.approx(0.1, rel=1e-3)
    assert clipped[0] == pytest.approx(min(free[0], 0.1), rel=1e-3)


class TestWeights:
    FULL = Recipe(epochs=30, batch_size=1000, learning_rate=0.02, reshuffle=False)

    def contradicting(self, weights) -> Sets:
        """The same set twice, with the labels 1 and 3."""
        ones = np.ones((1, 4), np.float32)
        return Sets.from_arrays([ones, ones], y=[1.0, 3.0], weights=np.array(weights, float))

    @pytest.mark.parametrize(("weights", "mean"), [([1, 0], 1), ([0, 1], 3), ([1, 3], 2.5)])
    def test_pull(self, weights, mean):
        sets, model = self.contradicting(weights), network()
        fit(model, sets, recipe=replace(self.FULL, epochs=200))
        assert predict(model, sets) == pytest.approx([mean, mean], abs=0.02)

    def test_weight_two_is_the_set_twice(self, make):
        sets = make(40)
        doubled = sets.subset([*range(40), *range(10)])
        weighted = replace(sets, weights=np.repeat([2.0, 1.0], [10, 30]))
        recipe = replace(self.FULL, scale=False)  # the mean label counts sets, not weights
        one, two = network(), network()
        for model, part in ((one, doubled), (two, weighted)):
            fit(model, part, recipe=recipe)
        np.testing.assert_allclose(predict(one, sets), predict(two, sets), rtol=1e-4)

    def test_validation_is_weighted(self, make):
        model, sets = network(), self.contradicting([3, 1])
        error = (predict(model, sets) - sets.y) ** 2
        assert measure(model, sets, LOSSES["squared"]) == pytest.approx(
            (3 * error[0] + error[1]) / 4, rel=1e-5
        )

    def test_a_batch_without_weight(self, make):
        """Sets that do not count may fill a whole batch."""
        sets = replace(make(20), weights=np.repeat([1.0, 0.0], [2, 18]))
        history = fit(network(), sets, recipe=Recipe(epochs=2, batch_size=2))
        assert np.isfinite([h["train"] for h in history]).all()


class TestDivergence:
    HUGE = Recipe(
        epochs=5, batch_size=20, learning_rate=1e30, schedule="constant", clip=None, scale=False
    )

    def test_said(self, make):
        with pytest.raises(Diverged, match=r"diverged in epoch \d.*learning rate below 1e\+30"):
            fit(network(), make(), recipe=self.HUGE)

    def test_network_stays_usable(self, make):
        model = network()
        with pytest.raises(Diverged):
            fit(model, make(), make(20), recipe=self.HUGE)
        assert np.isfinite(predict(model, make())).all()


class TestScaling:
    def test_data_are_never_changed(self, make):
        sets, valid = make(), make(50, seed=1)
        before = [a.copy() for s in (sets, valid) for a in (s.pool, s.index, s.offsets, s.y)]
        for s in (sets, valid):
            for array in (s.pool, s.index, s.offsets, s.y):
                array.setflags(write=False)
        fit(network(), sets, valid, recipe=QUICK)
        after = [a for s in (sets, valid) for a in (s.pool, s.index, s.offsets, s.y)]
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_unit(self, make):
        model, sets = network(), make()
        fit(model, sets, recipe=QUICK)
        expected = sets.y.std() / np.sqrt(sets.sizes.mean())
        assert model.unit.tolist() == pytest.approx([expected])
        assert "unit" in model.state_dict(), "predictions of a loaded network need it"
        assert all(p is not model.unit for p in model.parameters())

    def test_unscaled(self, make):
        model = network()
        fit(model, make(), recipe=replace(QUICK, scale=False))
        assert model.unit.tolist() == [1.0]

    @pytest.mark.parametrize("factor", [2.0**20, 2.0**-20])
    def test_the_unit_of_labels_does_not_matter(self, make, factor):
        """Cents or euros: with a power of two not a bit is different."""
        sets = make()
        other = replace(sets, y=sets.y * np.float32(factor))
        one, two = network(), network()
        fit(one, sets, sets, recipe=QUICK)
        fit(two, other, other, recipe=QUICK)
        np.testing.assert_array_equal(predict(two, sets), predict(one, sets) * factor)

    def test_constant_labels(self, make):
        sets = replace(make(), y=np.full(200, 7.0, np.float32))
        model = network(activation="identity")
        fit(model, sets, recipe=LONG)
        assert predict(model, sets) == pytest.approx(7.0, abs=0.5)

    def test_several_outputs_have_their_own_units(self, make):
        sets = make()
        sets = replace(sets, y=np.stack([sets.y, 1000 * sets.y], axis=1))
        model = network(outputs=2)
        fit(model, sets, recipe=LONG)
        assert model.unit[1] == pytest.approx(1000 * float(model.unit[0]))
        share = np.abs(predict(model, sets) - sets.y).mean(0) / sets.y.std(0)
        assert (share < 0.8).all()


class TestLearning:
    @pytest.mark.parametrize("name", ["c-gru", "gru", "deepset", "set-transformer"])
    def test_counts_distinct_instances(self, make, name):
        model = build(name, in_features=4, hidden=16, layers=1, seed=0)
        fit(model, make(600), recipe=replace(LONG, epochs=12))
        test = make(200, seed=2)
        assert np.mean((predict(model, test) - test.y) ** 2) < 0.2 * test.y.var()

    def test_absolute(self, make):
        model, sets = network(), make()
        fit(model, sets, recipe=LONG, loss="absolute")
        assert np.abs(predict(model, sets) - sets.y).mean() < 0.5 * sets.y.std()

    def test_logistic(self, make):
        """Predictions are logits, and added values sum to them."""
        sets = make()
        sets = replace(sets, y=(sets.y > 2).astype(np.float32))
        model = network(activation="identity")
        fit(model, sets, recipe=LONG, loss="logistic")
        assert ((predict(model, sets) > 0) == sets.y).mean() > 0.9
        assert model.unit.tolist() == [1.0]

    def test_softmax(self, make):
        sets = replace(make(), y=make().y - 1)
        model = build("gru", in_features=4, hidden=16, layers=1, outputs=4, seed=0)
        fit(model, sets, recipe=LONG, loss="softmax")
        assert (predict(model, sets).argmax(1) == sets.y).mean() > 0.8


class TestSeveralOrders:
    """Several orders at each step: the mean prediction is what is trained."""

    def test_same_seed_same_bits(self, make):
        several = replace(QUICK, orders=3)
        assert bits(trained(make, recipe=several)) == bits(trained(make, recipe=several))
        assert bits(trained(make, recipe=several)) != bits(trained(make))

    def test_where_order_cannot_matter_nothing_changes(self, make):
        weights = []
        for orders in (1, 3):
            model = build("deepset", in_features=4, hidden=8, layers=1, seed=0).double()
            fit(model, make(), recipe=replace(QUICK, orders=orders))
            weights.append(model.state_dict())
        for name, value in weights[0].items():
            torch.testing.assert_close(value, weights[1][name], msg=name)

    def test_the_mean_is_fitted(self, make):
        """One order alone may be wrong: the loss sees the mean over many of them."""
        sets = make(20)

        class Noisy(type(network())):
            """Adds to every prediction what averages out over orders."""

            def values(self, x):
                sign = torch.where(x[:, :1, :1] > 0, 1.0, -1.0)
                return super().values(x) + 3 * sign * (x.shape[1] > 1) / x.shape[1]

        losses = []
        for orders in (1, 16):
            base = network()
            model = Noisy(encoder=base.encoder, cell=base.cell, decoder=base.decoder)
            history = fit(model, sets, recipe=replace(QUICK, epochs=1, orders=orders))
            losses.append(history[0]["train"])
        assert losses[1] < losses[0]

    def test_a_checkpoint_from_before_there_were_orders(self, make, tmp_path):
        """What a recipe did not have when training began has its default."""
        from capnets.training.checkpoint import Checkpoint

        path = tmp_path / "checkpoint.safetensors"
        fit(network(), make(), recipe=QUICK, checkpoint=path)
        saved = Checkpoint.read(path)
        del saved.about["recipe"]["orders"]
        saved.write(path)
        assert len(fit(network(), make(), recipe=QUICK, checkpoint=path)) == 3
        with pytest.raises(InputError, match="its recipe differs"):
            fit(network(), make(), recipe=replace(QUICK, orders=2), checkpoint=path)


class TestBadInput:
    def test_nothing_to_learn_from(self, make):
        with pytest.raises(InputError, match="zero training sets"):
            fit(network(), make()[:0])
        with pytest.raises(InputError, match="zero validation sets"):
            fit(network(), make(), make()[:0])
        with pytest.raises(InputError, match="training sets have no labels"):
            fit(network(), replace(make(), y=None))

    def test_not_a_number(self, make):
        sets = make()
        sets.pool[2, 1] = np.nan
        with pytest.raises(InputError, match=r"set \d+ has the value nan in column 1"):
            fit(network(), sets)

    def test_label_not_a_number(self, make):
        valid = make()
        valid.y[3] = np.inf
        with pytest.raises(InputError, match="the label of set 3 is inf"):
            fit(network(), make(), valid)

    def test_wrong_width(self, make):
        with pytest.raises(InputError, match=r"shape \(4,\), but this network was built for 5"):
            fit(network(in_features=5), make())

    def test_wrong_outputs(self, make):
        with pytest.raises(InputError, match="sets have 1 labels each, the network gives 2"):
            fit(network(outputs=2), make())

    def test_unknown_loss(self, make):
        with pytest.raises(InputError, match="unknown loss 'sqared': did you mean 'squared'"):
            fit(network(), make(), loss="sqared")

    @pytest.mark.parametrize("label", [-1, 4, 0.5])
    def test_no_class(self, make, label):
        sets = replace(make(), y=np.full(200, label, np.float32))
        with pytest.raises(InputError, match="whole numbers from 0 to 3"):
            fit(network(outputs=4), sets, loss="softmax")

    def test_no_share(self, make):
        with pytest.raises(InputError, match="from 0 to 1"):
            fit(network(), make(), loss="logistic")
