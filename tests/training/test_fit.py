"""The loop: same bits, best weights, early stopping, divergence, bad input."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import predict
from capnets.models import build
from capnets.training.fit import Diverged, fit, measure
from capnets.training.losses import LOSSES
from capnets.training.recipe import Recipe
from small_networks import LONG, QUICK, bits, network, trained


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

    def test_dropout_has_the_seed(self, make):
        settings = {"inputs": "standardize", "dropout": 0.3}
        torch.manual_seed(1)
        one = trained(make, **settings)
        torch.manual_seed(2)
        assert bits(one) == bits(trained(make, **settings))
        assert bits(one) != bits(trained(make, seed=3, **settings))

    def test_numbers_of_others_are_left_alone(self, make):
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        trained(make)
        assert torch.equal(torch.rand(3), expected)

    def test_more_epochs_begin_alike_under_a_constant_rate(self, make):
        constant = replace(QUICK, schedule="constant")
        one, two = network(), network()
        few = fit(one, make(), recipe=constant)
        many = fit(two, make(), recipe=replace(constant, epochs=5))
        assert [h["train"] for h in few] == [h["train"] for h in many[:3]]


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
        sets.instances[2, 1] = np.nan
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
