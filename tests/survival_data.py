"""Times, events and sets whose hazards are known; needs numpy only."""

import numpy as np


def rows(sets=60, *, seed=0, ties=True):
    """Return features, times and events; with ties, times are whole numbers."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(sets, 3))
    time = draw.exponential(np.exp(-x @ [0.8, -0.5, 0.0])) * 10
    event = draw.random(sets) < 0.7
    return x, np.ceil(time) if ties else time, event.astype(float)


#: Log-hazard that a unit of each feature adds, in `ragged_sets`.
EFFECTS = np.array([0.9, -0.6, 0.0])


def ragged_sets(count=200, *, seed=0):
    """Return sets, (time, event) and the true log-hazards, sums over instances."""
    draw = np.random.default_rng(seed)
    X = [draw.normal(size=(draw.integers(1, 6), 3)) for _ in range(count)]
    hazard = np.array([(x @ EFFECTS).sum() for x in X])
    time = draw.exponential(np.exp(-hazard))
    censored = draw.exponential(np.exp(1.0), size=count)
    return X, np.stack([np.minimum(time, censored), time <= censored], axis=1), hazard
