"""In which orders instances are read in training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.models import build
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe
from small_networks import QUICK, bits, network, trained


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
