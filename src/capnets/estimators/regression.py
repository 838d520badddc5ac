"""Predict amounts: one number, or several, per set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.base import RegressorMixin

from capnets.estimators.base import SetEstimator
from capnets.estimators.targets import as_counts
from capnets.learn import Problem
from capnets.sets import Array

__all__ = ["SetRegressor"]


class SetRegressor(RegressorMixin, SetEstimator):  # type: ignore[misc]
    """Predict an amount per set, and the value each instance adds to it.

    Parameters
    ----------
    model
        Name of a network; see `capnets models`. None compares a short list of networks with exact
        added values on inner folds (see `capnets.learn.choice`).
    columns
        For tables: the name of the set column, or a `Columns`.
    hidden, members
        Hidden dimensions, and number of networks to average; None chooses by the number of sets
        (see `capnets.training.presets`).
    aggregation, baseline
        How the values of a capacity network form its prediction: `sum`, `mean`, `mean+sum`, `last`
        or, for labels 0 and 1, `any`; and its prediction for the empty set: `none` (0) or
        `learned`.
    network
        Further settings, such as `{"layers": 2, "dropout": 0.2}`, as in `ModelSpec`. With the
        `activation` `identity`, the default, an instance may lower the prediction; with `abs` and
        `softplus` it may not.
    orders
        Random orders that predictions and added values are averaged over; 1 reads instances in the
        given order, as does a table with an order column. None chooses by the number of sets.
    sort
        Read instances sorted: by the name or number of a feature, smallest first, or by `worth`,
        the network's prediction for each instance alone. Predictions then do not depend on the
        order of X.
    priors
        Prior knowledge about added values, as penalties: `Consistent()`, `UpperBound(bound=1)`, …;
        see `capnets.training.priors`.
    recipe
        A `Recipe` or the name of one; None chooses by the number of sets. A dictionary changes
        single settings of the default recipe: `{"batch_size": 16}`.
    loss
        `squared` (by default), `absolute`, `huber`, a quantile such as `quantile:0.9`, or `poisson`
        for counts: the logarithm of the expected count is the sum of the added values, `predict`
        returns the expected count. Others than `squared` need a named network.
    epochs
        Number of epochs, if not the recipe's.
    early_stopping
        Hold out a tenth of the sets, or the share given (whole groups, if a table has a group
        column), and keep the weights of the epoch that is best on them. By default (`auto`) only
        with 5,000 sets or more; smaller data sets are used for training as a whole.
    random_state
        Seed of initial weights and orders.
    device
        `cpu`, `cuda` or `mps`; None trains on the best available.
    verbose
        Whether to show progress.

    Attributes
    ----------
    model_
        The trained network.
    spec_, recipe_, n_orders_, seed_
        The chosen network, recipe, number of orders and seed.
    history_
        One record per epoch.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.random.default_rng(k).random((k % 4 + 1, 3)) for k in range(40)]
    >>> y = [x[:, 0].sum() for x in X]
    >>> model = SetRegressor(members=1, epochs=5, random_state=0).fit(X, y)
    >>> values = model.added_values(X[:2])
    >>> sums = model.baseline_ + [values[:1].sum(), values[1:].sum()]
    >>> values.shape, bool(abs(sums - model.predict(X[:2])).max() < 1e-4)
    ((3,), True)
    """

    classifies = False

    def __sklearn_tags__(self) -> Any:
        """Declare that y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # X may hold the labels
        tags.target_tags.multi_output = True
        return tags

    def problem(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, folder: Path | None = None
    ) -> Problem:
        """Return what `fit` would learn from X and y."""
        problem = super().problem(X, y, sample_weight, folder=folder)
        return as_counts(problem) if self.loss == "poisson" else problem

    def predict(self, X: Any) -> Array:
        """Return one prediction per set (a row where y had rows), in the order of `set_ids`."""
        raw = self.raw(X)
        return self.target_.decide(raw)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² over sets (its mean over the outputs); y and weights as in `fit`."""
        return float(super().score(*self._labelled(X, y, sample_weight)))
