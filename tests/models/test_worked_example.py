"""A capacity network small enough to verify by hand: it computes a Unique Sum exactly.

Instances are a three, (1, 0), or a five, (0, 1). The state has four numbers:
    s3, s5   1 once a three, a five was seen
    n3, n5   1 if the instance is a three, a five, that was not seen before
With a steep tanh, t(a) = tanh(20 a), so that t(1) = 1, t(0) = 0, t(-1) = -1 in double precision:
    s3' = t(e3 + s3)      seen is what is seen now or was seen before
    n3' = t(e3 - s3)      1 - 0: new;  1 - 1 = 0: known;  0 - 1: known, and absent (negative)
(s3 + e3 may be 2: t(2) = 1 as well.) The decoder keeps the positive parts of n3 and n5, weighed:
    v = |3 relu(n3) + 5 relu(n5)|
"""

import pytest
import torch
from torch import nn

from capnets.models import CapacityNetwork
from capnets.nn.cells import RNNCell
from capnets.nn.encoders import mlp

THREE, FIVE = (1.0, 0.0), (0.0, 1.0)
STEEP = 20.0


@pytest.fixture
def network() -> CapacityNetwork:
    encoder, cell, decoder = mlp(2, 2), RNNCell(2, 4), mlp(4, 2, 1)
    net = CapacityNetwork(encoder=encoder, cell=cell, decoder=decoder, activation="abs").double()
    by_name = {
        "encoder.0.weight": [[1, 0], [0, 1]],  # features are the instance itself
        "encoder.0.bias": [0, 0],
        # Rows: s3, s5, n3, n5. Columns: e3, e5.
        "cell.weight_input": [[STEEP, 0], [0, STEEP], [STEEP, 0], [0, STEEP]],
        # Columns: s3, s5, n3, n5 before. n3 and n5 are not remembered.
        "cell.weight_state": [
            [STEEP, 0, 0, 0],
            [0, STEEP, 0, 0],
            [-STEEP, 0, 0, 0],
            [0, -STEEP, 0, 0],
        ],
        "cell.bias": [0, 0, 0, 0],
        "decoder.0.weight": [[0, 0, 1, 0], [0, 0, 0, 1]],  # n3, n5; then ReLU
        "decoder.0.bias": [0, 0],
        "decoder.2.weight": [[3, 5]],
        "decoder.2.bias": [0],
    }
    with torch.no_grad():
        parameters = dict(net.named_parameters())
        assert parameters.keys() == by_name.keys()
        for name, values in by_name.items():
            parameters[name].copy_(torch.tensor(values))
    return net


def test_unique_sum(network):
    #            three  five  three three five
    # s3 before    0     1     1     1    1
    # s5 before    0     0     1     1    1
    # n3         1-0=1  0-1   1-1   1-1  0-1    positive parts: 1 0 0 0 0
    # n5         0-0=0  1-0   0-1   0-1  1-1    positive parts: 0 1 0 0 0
    # value        3     5     0     0    0     sum 8 = 3 + 5
    x = torch.tensor([[THREE, FIVE, THREE, THREE, FIVE]], dtype=torch.float64)
    assert network.added_values(x).flatten().tolist() == [3, 5, 0, 0, 0]
    assert network(x).item() == 8


def test_value_depends_on_order_and_sum_does_not(network):
    x = torch.tensor([[FIVE, FIVE, THREE]], dtype=torch.float64)
    assert network.added_values(x).flatten().tolist() == [5, 0, 3]
    assert network.added_values(x.flip(1)).flatten().tolist() == [3, 5, 0]
    assert network(x).item() == network(x.flip(1)).item() == 8


def test_sets_of_different_size_in_one_batch(network):
    x = torch.tensor([[THREE, THREE, FIVE], [FIVE, (7.0, 7.0), (7.0, 7.0)]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert network(x, mask).flatten().tolist() == [8, 5]
    assert network.added_values(x, mask).squeeze(-1).tolist() == [[3, 0, 5], [5, 0, 0]]


def test_step_by_step(network):
    state = network.initial_state()
    values = []
    for instance in (THREE, THREE, FIVE):
        value, state = network.step(torch.tensor([instance], dtype=torch.float64), state)
        values.append(value.item())
    assert values == [3, 0, 5]
    assert state.flatten().tolist() == [1, 1, -1, 1]  # both seen; no new three; a new five


def test_in_another_unit(network):
    # The network's own number 1 stands for two euros: a three is worth 6, a five 10.
    network.unit.fill_(2.0)
    x = torch.tensor([[THREE, FIVE, THREE]], dtype=torch.float64)
    assert network.added_values(x).flatten().tolist() == [6, 10, 0]


def test_signed_values(network):
    # Without |.| a weight of -5 makes a five take away; with it, the five adds 5.
    with torch.no_grad():
        layer = network.decoder[-1]
        assert isinstance(layer, nn.Linear)
        layer.weight.copy_(torch.tensor([[3.0, -5.0]]))
    x = torch.tensor([[THREE, FIVE]], dtype=torch.float64)
    assert network.added_values(x).flatten().tolist() == [3, 5]
    network.activation = "identity"
    assert network.added_values(x).flatten().tolist() == [3, -5]
    assert network(x).item() == -2
