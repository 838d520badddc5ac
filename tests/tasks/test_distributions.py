"""Exact distributions: against enumeration and closed forms."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from capnets.sets import offsets_of
from capnets.tasks import FUNCTIONS, find_function
from capnets.tasks.functions import ClosedForms

CLOSED = [f for f in FUNCTIONS.values() if isinstance(f, ClosedForms)]
functions = pytest.mark.parametrize("f", CLOSED, ids=lambda f: f.short)


@functions
def test_distribution_equals_counting_all_sequences(f):
    for size in (1, 2, 4):
        classes = np.array(list(product(range(10), repeat=size))).reshape(-1)
        labels = f.value(classes, offsets_of([size] * 10**size))
        counted = Counter(labels.tolist())
        exact = f.distribution(size)
        assert exact.values.tolist() == sorted(counted)
        np.testing.assert_allclose(
            exact.probabilities, [counted[v] / 10**size for v in sorted(counted)], rtol=1e-12
        )


def mean(name, size=10):
    return find_function(name).distribution(size).mean


def test_means_have_closed_forms():
    assert mean("US") == pytest.approx(45 * (1 - 0.9**10))
    assert mean("UC") == pytest.approx(10 * (1 - 0.9**10))
    assert mean("WTri") == pytest.approx(65.25)
    assert mean("TriC") == pytest.approx(14.5)
    assert mean("US+S") == pytest.approx(45 * (1 - 0.9**10) + 50 * (1 - 2 * 0.9**10 + 0.8**10))
    assert mean("Mult", 3) == pytest.approx(4.5**3)
