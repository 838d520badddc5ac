"""Mean labels under class probabilities, compared with enumeration of all classes."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.tasks.functions import FUNCTIONS

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "heldout"))
from expected_labels import MEANS, mean_labels


def drawn(sets: int, size: int, *, certain: float = 0.0) -> np.ndarray:
    stream = np.random.default_rng(0)
    p = stream.dirichlet(np.full(10, 0.3), size=(sets, size))
    known = stream.random((sets, size)) < certain
    p[known] = np.eye(10)[p[known].argmax(1)]
    return p


def test_every_set_function_has_its_mean():
    assert set(MEANS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_mean_over_all_classes_that_may_be(name):
    p = drawn(2, 4)
    classes = np.array(list(product(range(10), repeat=4)))
    values = FUNCTIONS[name].value(classes.ravel(), np.arange(len(classes) + 1) * 4)
    for k in range(2):
        likelihood = p[k, np.arange(4), classes].prod(1)
        assert mean_labels(name, p[k : k + 1])[0] == pytest.approx(likelihood @ values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_certain_classes_give_the_label(name):
    p = drawn(20, 10, certain=1.0)
    expected = FUNCTIONS[name].value(p.argmax(2).ravel(), np.arange(21) * 10)
    np.testing.assert_allclose(mean_labels(name, p), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_order_does_not_matter(name):
    p = drawn(5, 6, certain=0.5)
    np.testing.assert_allclose(mean_labels(name, p), mean_labels(name, p[:, ::-1]))


def test_bad_input():
    with pytest.raises(InputError, match="did you mean 'unique-sum'"):
        mean_labels("unique-summ", drawn(1, 2))
    with pytest.raises(InputError, match=r"shape \(2, 10\); expected sets x instances x 10"):
        mean_labels("product", drawn(1, 2)[0])
    with pytest.raises(InputError, match="must sum to 1"):
        mean_labels("product", 2 * drawn(1, 2))
