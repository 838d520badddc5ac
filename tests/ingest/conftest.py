import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def frame() -> pd.DataFrame:
    """Forty instances of eight baskets, rows of a basket not together."""
    generator = np.random.default_rng(0)
    basket = generator.permutation(np.repeat(np.arange(8), 5))
    return pd.DataFrame(
        {
            "basket": [f"b{k}" for k in basket],
            "x1": generator.normal(size=40),
            "x2": generator.integers(0, 9, size=40),
            "colour": generator.choice(["red", "green", "blue"], size=40),
            "place": generator.permutation(40),
            "shop": basket // 2,
            "worth": basket * 1.5,
            "kind": np.where(basket % 2, "odd", "even"),
        }
    )
