"""Small sets of unequal sizes, with labels that can be learned from them."""

import numpy as np
import pandas as pd

QUICK = {"model": "c-gru", "members": 1, "orders": 2, "epochs": 8, "hidden": 8, "random_state": 0}


def ragged(count=60, features=3, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(generator.integers(1, 6), features)) for _ in range(count)]


def amounts(X):
    return np.array([x[:, 0].sum() for x in X])


def classes(X):
    return np.where([x[:, 0].max() > 0.8 for x in X], "yes", "no")


def frame_of(X, y):
    return pd.concat(
        pd.DataFrame(x, columns=["a", "b", "c"]).assign(set=f"s{k}", y=y[k])
        for k, x in enumerate(X)
    ).sample(frac=1, random_state=0)
