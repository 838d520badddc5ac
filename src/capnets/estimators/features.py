"""Fixed-length features of sets, for learners that take one row per set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from capnets.errors import InputError, unknown
from capnets.estimators.base import SetEstimator
from capnets.estimators.inputs import known_table, read
from capnets.ingest import Columns, Schema, SetData
from capnets.ingest.frames import like
from capnets.sets import Array
from capnets.sets.covariates import check_same

__all__ = ["SetFeatures"]

#: Statistics by name; each maps instances x features to one number per feature.
STATISTICS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda x: x.mean(axis=0),
    "std": lambda x: x.std(axis=0),
    "min": lambda x: x.min(axis=0),
    "max": lambda x: x.max(axis=0),
    "sum": lambda x: x.sum(axis=0),
    "median": lambda x: np.median(x, axis=0),
}


class SetFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe every set by a row of fixed length.

    Covariates, which are known of the set as a whole, become columns as they are.

    Parameters
    ----------
    columns
        For tables: the name of the set column, or a `Columns`.
    statistics
        Any of mean, std, min, max, sum and median; each gives one column per feature.
    size
        Whether the number of instances is a column.
    network
        An estimator such as `SetRegressor()`. A clone is trained in `fit`, and its outputs and the
        smallest and largest value that an instance adds become columns. Rows of the training sets
        then depend on their labels: to stack learners, predict them in cross-validation. It reads
        tables by `columns` if it has none of its own.

    Attributes
    ----------
    network_
        The trained clone, if a network was given.

    Examples
    --------
    >>> X = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])]
    >>> SetFeatures(statistics=["mean"]).fit_transform(X).to_numpy().tolist()
    [[2.0, 2.0, 3.0], [1.0, 5.0, 6.0]]
    """

    schema_: Schema | None
    n_features_in_: int
    feature_names_in_: Array
    network_: SetEstimator

    def __init__(
        self,
        columns: Columns | str | None = None,
        *,
        statistics: Sequence[str] = ("mean", "std", "min", "max"),
        size: bool = True,
        network: SetEstimator | None = None,
    ) -> None:
        self.columns = columns
        self.statistics = statistics
        self.size = size
        self.network = network

    def __sklearn_tags__(self) -> Any:
        """Declare sets as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = self.network is not None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns of X and, if there is one, train the network on X and y."""
        for name in self.statistics:
            if name not in STATISTICS:
                raise unknown("statistic", name, STATISTICS)
        if not self.statistics and not self.size and self.network is None:
            raise InputError("no statistics, no size and no network: nothing describes a set")
        data = read(X, self.columns, learning=True)
        self.schema_, self.n_features_in_ = data.schema, data.sets.in_features
        names = data.sets.feature_names
        self._covariates = data.sets.n_covariates, data.sets.covariate_names
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if self.network is not None:
            network = clone(self.network)
            if network.columns is None:
                network.set_params(columns=self.columns)
            self.network_ = network.fit(X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return a frame with one row per set, of the library of X (of pandas, if X is no frame).

        A pandas frame is indexed by the names of the sets.
        """
        import pandas as pd

        data = self._read(X)
        sets = data.sets
        rows = [self._describe(np.asarray(sets[k], dtype=np.float64)) for k in range(len(sets))]
        described = np.array(rows).reshape(len(sets), -1)
        if sets.covariates is not None:
            described = np.concatenate([described, sets.covariates], axis=1)
        if self.network is not None:
            described = np.concatenate([described, self._network_columns(X)], axis=1)
        names = self.get_feature_names_out().tolist()
        return like(known_table(X), pd.DataFrame(described, columns=names, index=sets.ids))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns, such as `mean_price`."""
        check_is_fitted(self, "n_features_in_")
        numbered = [f"x{k}" for k in range(self.n_features_in_)]
        names = list(getattr(self, "feature_names_in_", numbered))
        found = ["size"] if self.size else []
        found += [f"{statistic}_{name}" for statistic in self.statistics for name in names]
        count, covariates = self._covariates
        found += covariates or [f"covariate{k}" for k in range(count)]
        if self.network is not None:
            outputs = self.network_.output_names()
            parts = ("prediction", "min_added", "max_added")
            found += [f"{part}_{name}" for part in parts for name in outputs]
        return np.array(found, dtype=object)

    def _read(self, X: Any) -> SetData:
        check_is_fitted(self, "n_features_in_")
        schema = self.schema_
        if schema is not None:  # features need no labels, groups or weights
            columns = replace(schema.columns, target=(), group=None, weight=None)
            schema = replace(schema, columns=columns)
        data = read(X, schema or self.columns)
        if data.sets.in_features != self.n_features_in_:
            raise InputError(
                f"X has {data.sets.in_features} features, but SetFeatures is expecting "
                f"{self.n_features_in_} features as input"
            )
        check_same(data.sets, *self._covariates, who="SetFeatures")
        return data

    def _describe(self, x: Array) -> Array:
        size = [np.array([len(x)])] if self.size else []
        return np.concatenate([*size, *(STATISTICS[name](x) for name in self.statistics)])

    def _network_columns(self, X: Any) -> Array:
        """Return outputs, smallest and largest added values, one row per set."""
        raw = self.network_.raw(X)
        explained = self.network_.read(X)
        values = np.asarray(self.network_.added_values(X)).reshape(-1, raw.shape[1])
        if explained.schema is not None:
            values = values[explained.sets.index]
        starts = explained.sets.offsets[:-1]
        lowest, highest = (f.reduceat(values, starts, axis=0) for f in (np.minimum, np.maximum))
        return np.concatenate([raw, lowest, highest], axis=1)
