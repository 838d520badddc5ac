"""Instance orders in training."""

import numpy as np
import torch

from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe
from small_networks import network


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
