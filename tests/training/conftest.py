from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from capnets.sets import Sets, offsets_of

CLASSES = 4

Maker = Callable[..., Sets]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def make() -> Maker:
    """Sets of one-hot instances; the label is the number of distinct ones. Sizes are 1 to 5."""

    def make(sets: int = 200, *, seed: int = 0, **about: object) -> Sets:
        draw = np.random.default_rng(seed)
        offsets = offsets_of(draw.integers(1, 6, size=sets))
        index = draw.integers(CLASSES, size=offsets[-1])
        y = [len(set(index[a:b])) for a, b in pairwise(offsets)]
        pool = np.eye(CLASSES, dtype=np.float32)
        return Sets(pool, index, offsets, np.array(y, np.float32), **about)

    return make
