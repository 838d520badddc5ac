"""Values that labels do not determine are explained with a warning."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.estimators import SetRegressor
from capnets.explain import explain
from capnets.models import ModelSpec, build
from capnets.sets import Sets

GENERATOR = np.random.default_rng(0)


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
def test_position(name, sizes, orders, warned):
    model = build(name, in_features=3, hidden=4, members=2, seed=0)
    found = explain(model, sets_of(*sizes), orders=orders)
    assert ("labels determine the sum of the values only" in found.meaning) == warned
    assert ("Use c-deepset" in found.caution) == warned
    again = type(found).from_dict(found.to_dict())
    assert again.caution == found.caution


@pytest.mark.parametrize(
    ("name", "mixed", "warned"),
    [
        ("c-pool", (), True),
        ("c-deepset", (), False),
        ("c-gru", ("c-gru:sum:learned", "c-pool:sum:learned"), True),  # one member is enough
    ],
)
def test_pooled_statistics(name, mixed, warned):
    """Values of networks that read pooled statistics are doubtful for sets of all sizes."""
    spec = ModelSpec(name, in_features=3, hidden=4, activation="identity", baseline="learned")
    model = replace(spec, mixed=mixed, members=max(1, len(mixed))).build(0)
    found = explain(model, sets_of(2, 4))
    assert ("C-Pool and C-Trees" in found.caution) == warned
    assert found.caution in found.meaning


@pytest.mark.parametrize("method", ["added", "shapley"])
@pytest.mark.parametrize("orders", [None, 4])
@pytest.mark.parametrize(("sizes", "warned"), [((4, 4), True), ((4, 3), False)])
def test_learned_baseline(sizes, warned, method, orders):
    """With one size, labels cannot tell the baseline from a constant in every value."""
    model = build("c-deepset", in_features=3, hidden=4, seed=0, activation="identity",
                  baseline="learned")  # fmt: skip
    model.start(unit=torch.ones(1), label=torch.ones(1), size=4.0)
    assert model.baseline
    found = explain(model, sets_of(*sizes), method=method, orders=orders)
    assert ("labels do not determine how much" in found.meaning) == warned


@pytest.mark.parametrize(("trained", "warned"), [(3, True), (4, False)])
def test_sizes_in_training_count(trained, warned):
    """An estimator knows the sizes it was trained on."""
    x = [GENERATOR.normal(size=(3 if k else trained, 2)) for k in range(12)]
    fitted = SetRegressor("c-deepset", baseline="learned", epochs=1, members=1)
    fitted.fit(x, np.arange(12.0))
    assert ("do not determine" in fitted.explain(x[1:3]).caution) == warned
