"""Amounts: one number, or several, per set."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.inputs import Given
from capnets.sets import Array

__all__ = ["SetRegressor"]

#: So many steps of 32-bit numbers the spread of amounts has at least; with fewer, rounding shows.
STEPS = 8


class SetRegressor(RegressorMixin, SetEstimator):  # type: ignore[misc]
    """Predict an amount per set, and what each instance adds to it.

    Parameters
    ----------
    model
        A network of the registry; see `capnets models`.
    columns
        For tables: the name of the set column, or a `Columns`.
    hidden, layers, dropout, members
        As in `ModelSpec`; None chooses by the number of sets (see `capnets.training.presets`).
    activation
        Of added values in capacity networks: `identity` lets an instance lower the prediction,
        `abs` and `softplus` do not.
    orders
        Random orders that predictions and added values are averaged over; 1 reads instances as they
        come, as does a table with an order column. None chooses by the number of sets.
    sort
        Read instances sorted: by the name or number of a feature, smallest first, or by `worth`,
        what the network predicts for each alone. No order of X changes a prediction then.
    priors
        What is known about added values, as penalties: `Consistent()`, `UpperBound(bound=1)`, …,
        see `capnets.training.priors`.
    recipe
        A `Recipe` or the name of one; None chooses by the number of sets. A dictionary changes some
        settings of what is chosen so: `{"batch_size": 16}`.
    epochs
        Another number of epochs than the recipe's.
    early_stopping, validation_fraction
        Hold out a share of the sets (whole groups, if a table has a group column) and keep the
        weights of the epoch that is best on them. By default (`auto`) only with 5,000 sets or more:
        fewer are all needed for training.
    random_state
        Draws start weights and orders.
    verbose
        Whether to show progress.

    Attributes
    ----------
    model_
        The trained network.
    spec_, recipe_, n_orders_, seed_
        What was chosen.
    history_
        One line per epoch.

    Examples
    --------
    >>> X = [np.random.default_rng(k).random((k % 4 + 1, 3)) for k in range(40)]
    >>> y = [x[:, 0].sum() for x in X]
    >>> model = SetRegressor(members=1, epochs=5, random_state=0).fit(X, y)
    >>> values = model.added_values(X[:2])
    >>> values.shape, bool(abs(values.sum() - model.predict(X[:2]).sum()) < 1e-4)
    ((3,), True)
    """

    def _targets(self, labels: Array, given: Given | None) -> tuple[Array, str, int, Array | None]:
        if given is not None and given.classes is not None:
            where = "y" if given.schema is None else f"column {given.schema.columns.target[0]!r}"
            shown = ", ".join(map(str, given.classes[:5]))
            raise InputError(
                f"{where} names classes ({shown}), not amounts; use SetClassifier, "
                "or turn them into numbers"
            )
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"y holds something that is not a number: {error}") from error
        if labels.ndim not in (1, 2):
            raise InputError(f"y has shape {labels.shape}; expected one label, or a row, per set")
        _check_told_apart(labels, given)
        self.flat_ = labels.ndim == 1
        self.n_outputs_ = 1 if self.flat_ else labels.shape[1]
        return labels, "squared", self.n_outputs_, None

    def predict(self, X: Any) -> Array:
        """One prediction per set, in the order of `set_ids` (a row of them where y had rows)."""
        raw = self._raw(X)
        return raw[:, 0] if self.flat_ else raw

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² over sets (its mean over the outputs); y and weights as in `fit`."""
        return float(super().score(*self._labelled(X, y, sample_weight)))

    def _labels(self) -> Any:
        return {"flat": self.flat_}

    def _set_labels(self, labels: Any) -> None:
        self.flat_, self.n_outputs_ = labels["flat"], self.spec_.outputs


def _check_told_apart(labels: Array, given: Given | None) -> None:
    """Refuse amounts so far from zero that 32 bits round away what sets differ in.

    Labels of a table or of `Sets` are rounded already: then far ones may have become all alike.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest, spread = np.abs(labels).max(axis=0), labels.std(axis=0)
        step = np.spacing(largest.astype(np.float32))
        alike = spread <= STEPS * np.spacing(largest)  # but for the rounding of 64 bits
        lost = np.where(alike, step > 1, STEPS * step > spread)
    if lost.any():
        k = int(np.argmax(lost))
        shown = labels[0] if labels.ndim == 1 else labels[0, k]
        where = "y" if labels.ndim == 1 else f"output {k} of y"
        if given is not None and given.schema is not None:
            where = f"column {given.schema.columns.target[k]!r}"
        raise InputError(
            f"{where} has amounts such as {shown:.12g}, far from 0 but near each other: in 32 bits "
            "they cannot be told apart; subtract a constant from all of them, such as their mean"
        )
