import numpy as np
import pytest

from capnets.sets import Sets, offsets_of


@pytest.fixture
def three() -> Sets:
    """Three sets of sizes 2, 0 and 3 over two features, with everything that sets can have."""
    pool = np.arange(10, dtype=np.float32).reshape(5, 2)
    return Sets(
        pool, np.arange(5), offsets_of([2, 0, 3]), np.array([1.0, 0.0, 2.0]),
        classes=np.array([0, 1, 0, 1, 2]), ids=np.array(["a", "b", "c"]),
        weights=np.array([1.0, 2.0, 3.0]), feature_names=("width", "height"),
    )  # fmt: skip
