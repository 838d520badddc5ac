"""Values that labels do not determine are explained with a warning."""

import numpy as np
import pytest

from capnets.explain import explain
from capnets.models import build
from capnets.sets import Sets


def sets_of(*sizes):
    return Sets.from_arrays([np.ones((size, 3)) * k for k, size in enumerate(sizes)])


@pytest.mark.parametrize(
    ("name", "sizes", "orders", "warned"),
    [
        ("c-gru", (4, 4, 4), None, True),
        ("gru", (4, 4), None, True),
        ("c-deepset", (4, 4, 4), None, False),  # its values do not depend on the position
        ("c-gru", (4, 4, 3), None, False),  # sizes vary: the data determine the values
        ("c-gru", (4, 4, 4), 4, False),  # every instance stands at every position
        ("c-gru", (4,), None, False),  # one set says nothing about the sizes in training
        ("c-gru", (1, 1), None, False),
    ],
)
def test_caution(name, sizes, orders, warned):
    model = build(name, in_features=3, hidden=4, members=2, seed=0)
    found = explain(model, sets_of(*sizes), orders=orders)
    assert ("labels determine only the sum" in found.meaning) == warned
    assert ("Use c-deepset" in found.caution) == warned
    again = type(found).from_dict(found.to_dict())
    assert again.caution == found.caution
