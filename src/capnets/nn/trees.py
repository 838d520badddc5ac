"""Regression trees as a layer: a sum over complete binary trees.

Trees are grown by gradient boosting before the first step of a training (`grow`) and do not change
afterwards. Features are rounded to multiples of `GRID`, so that two ways to compute a mean, which
differ in the last bit, reach the same leaf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capnets.sets import Array

__all__ = ["GRID", "Trees"]

#: Number of trees per output, their depth, and the shrinkage of each.
COUNT, DEPTH, RATE = 150, 4, 0.05
#: Largest logit of a leaf before shrinkage; few or light rows would give any number.
LOGIT = 10.0
#: Features are multiples of this, in standard deviations.
GRID = 2.0**-10


class Trees(nn.Module):
    """Sum the leaves that a row of features reaches.

    Parameters
    ----------
    in_features
        Features of a row, of about unit variance.
    outputs
        Numbers per row; every output has its own trees.

    Attributes
    ----------
    features, thresholds
        Of every split, trees x splits, level by level. A row goes left if its feature is at most
        the threshold.
    leaves
        Trees x leaves x outputs.
    """

    features: Tensor
    thresholds: Tensor
    leaves: Tensor

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__()
        self.in_features, self.outputs = in_features, outputs
        trees, splits = COUNT * outputs, 2**DEPTH - 1
        self.register_buffer("features", torch.randint(in_features, (trees, splits)))
        self.register_buffer("thresholds", torch.randn(trees, splits))
        self.register_buffer("leaves", torch.randn(trees, splits + 1, outputs) / trees**0.5)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.rounded(x).flatten(0, -2)
        trees, splits = self.features.shape
        node = torch.zeros(len(rows), trees, dtype=torch.int64, device=x.device)
        first = torch.arange(trees, device=x.device)
        for _ in range(DEPTH):
            split = first * splits + node
            value = rows.gather(1, self.features.flatten()[split])
            node = 2 * node + 1 + (value > self.thresholds.flatten()[split]).long()
        reached = first * (splits + 1) + node - splits
        found = self.leaves.flatten(0, 1)[reached].sum(1)
        # A step function has gradient 0, but it has one.
        return found.view(*x.shape[:-1], self.outputs) + 0.0 * x.sum(-1, keepdim=True)

    @staticmethod
    def rounded(x: Tensor) -> Tensor:
        """Round features to multiples of `GRID`."""
        return (x / GRID).round() * GRID

    @torch.no_grad()
    def grow(
        self, x: Tensor, y: Tensor, *, classes: bool, weights: Tensor | None, seed: int
    ) -> None:
        """Grow the trees of every output by stochastic gradient boosting.

        Parameters
        ----------
        x
            Rows x features.
        y
            Rows x outputs: amounts, or probabilities if `classes`; leaves then hold logits.
        classes
            Whether labels are classes.
        weights
            A weight per row.
        seed
            Seed of rows and features that a tree sees.
        """
        rows = self.rounded(x).float().numpy()
        share = None if weights is None else weights.double().numpy()
        for output, column in enumerate(y.double().numpy().T):
            own = slice(output * COUNT, (output + 1) * COUNT)
            self.leaves[own] = 0.0
            self.thresholds[own] = torch.finfo(self.thresholds.dtype).max  # all go left
            if np.ptp(column) > 0:
                model = _boosted(rows, column, classes=classes, weights=share, seed=seed + output)
                limit = LOGIT if classes else np.inf
                for number, (tree,) in enumerate(model.estimators_, own.start):
                    self._copy(tree.tree_, number, output, limit)

    def _copy(self, tree: Any, number: int, output: int, limit: float) -> None:
        """Copy a tree; branches that end early are continued to the left."""
        waiting = [(0, 0, 0)]
        while waiting:
            node, place, depth = waiting.pop()
            if tree.children_left[node] < 0:
                low = (place + 1) * 2 ** (DEPTH - depth) - 2**DEPTH
                value = np.clip(tree.value[node, 0, 0], -limit, limit)
                self.leaves[number, low, output] = RATE * float(value)
                continue
            self.features[number, place] = int(tree.feature[node])
            self.thresholds[number, place] = float(tree.threshold[node])
            waiting.append((tree.children_left[node], 2 * place + 1, depth + 1))
            waiting.append((tree.children_right[node], 2 * place + 2, depth + 1))


def _boosted(x: Array, y: Array, *, classes: bool, weights: Array | None, seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    settings: dict[str, Any] = {
        "n_estimators": COUNT,
        "max_depth": DEPTH,
        "learning_rate": RATE,
        "subsample": 0.7,
        "max_features": "sqrt",
        "min_samples_leaf": 3,
        "random_state": seed % 2**32,
    }
    if classes and np.isin(y, (0, 1)).all():
        return GradientBoostingClassifier(**settings).fit(x, y.astype(int), weights)
    if classes:  # probabilities of a teacher
        y = np.clip(y, 0.02, 0.98)
        y = np.log(y / (1 - y))
    return GradientBoostingRegressor(**settings).fit(x, y, weights)
