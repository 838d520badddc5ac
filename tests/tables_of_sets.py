"""Example sets: drawn by hypothesis, or a fixed three with every field."""

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from capnets.sets import Sets

# No deadline: how long an example takes says nothing on a machine that is busy with other things.
often = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw, min_sets=1):
    """A list of arrays (instances x features), some perhaps empty; no number occurs twice."""
    shape = draw(st.sampled_from([(1,), (3,), (1, 2, 2)]))
    sizes = draw(st.lists(st.integers(0, 4), min_size=min_sets, max_size=6))
    numbers = np.arange(sum(sizes) * np.prod(shape), dtype=np.float32)
    return np.split(numbers.reshape(-1, *shape), np.cumsum(sizes)[:-1])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(sets: Sets, arrays) -> None:
    assert len(sets) == len(arrays)
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(sets[k], array)
