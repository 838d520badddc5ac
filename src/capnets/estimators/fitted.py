"""Fitted set estimators: read data as in training, predict, explain and save."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from capnets.errors import InputError, SizeWarning, SplitWarning
from capnets.estimators.explaining import explain_estimator
from capnets.estimators.inputs import read
from capnets.estimators.per_set import labels_of, named, weighted, weights_of
from capnets.explain import Explanation
from capnets.ingest import Columns, Schema, SetData
from capnets.learn import Plan, Target
from capnets.learn.averaging import mean_added_values, mean_prediction
from capnets.learn.seen import are_seen, write_keys
from capnets.models import ModelSpec, SetModel
from capnets.runs import Run, RunConfig
from capnets.sets import Array, Sets
from capnets.sets.covariates import check_same
from capnets.sets.orders import Orders
from capnets.sets.validation import other_sizes
from capnets.training.recipe import Recipe

__all__ = ["FittedEstimator"]


class FittedEstimator(BaseEstimator):  # type: ignore[misc]
    """Attributes and methods of estimators after `fit`."""

    classifies: ClassVar[bool]
    columns: Columns | str | None

    model_: SetModel
    plan_: Plan
    target_: Target
    schema_: Schema | None
    config_: RunConfig
    n_features_in_: int
    feature_names_in_: Array
    history_: list[dict[str, Any]]
    training_keys_: Array | None
    training_ids_: Array | None

    def __sklearn_tags__(self) -> Any:
        """Declare sets as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True  # as many instances in every set
        return tags

    def _adopt(
        self, model: SetModel, history: list[dict[str, Any]], config: RunConfig, plan: Plan
    ) -> Self:
        """Take over a trained network and everything that its run records."""
        schema = config.data.get("schema")
        self.schema_ = None if schema is None else Schema.from_dict(schema)
        names: Any = config.data.get("feature_names")
        targets: tuple[str, ...] = ()
        if self.schema_ is not None:
            names, targets = self.schema_.feature_names or None, self.schema_.columns.target
        # scikit-learn has no such attribute where features have no names.
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.target_ = Target.from_data(config.data, config.model.outputs, targets)
        self.model_, self.history_, self.config_, self.plan_ = model, history, config, plan
        self.n_features_in_ = config.model.in_features
        return self

    @property
    def spec_(self) -> ModelSpec:
        """The chosen network."""
        return self.plan_.model

    @property
    def recipe_(self) -> Recipe:
        """The chosen recipe."""
        return self.plan_.recipe

    @property
    def baseline_(self) -> Array:
        """Prediction for the empty set, per output; added values are counted from here.

        With covariates there is one per set instead: see `explain(X).baselines`.
        """
        if self.model_.covariates:
            raise AttributeError("there is one baseline per set: explain(X).baselines")
        baseline: Array = self.model_.baseline.detach().cpu().numpy()
        return baseline

    @property
    def choice_(self) -> dict[str, Any] | None:
        """The networks that were compared, with their losses; None if one was named."""
        return self.plan_.choice

    @property
    def n_orders_(self) -> int:
        """Number of random orders that predictions are averaged over."""
        return self.plan_.orders

    @property
    def seed_(self) -> int:
        """The seed that was drawn from `random_state`."""
        return self.plan_.seed

    @property
    def fingerprint_(self) -> str | None:
        """Digest of the training data."""
        return self.config_.data.get("fingerprint")

    def read(self, X: Any, *, labels: bool = False) -> SetData:
        """Read X the way the training data were read."""
        check_is_fitted(self, "model_")
        schema = self.schema_
        if schema is not None:  # predictions need neither groups nor weights
            schema = replace(schema, columns=replace(schema.columns, group=None, weight=None))
        data = read(X, schema or self.columns, labels=labels)
        if data.sets.in_features != self.n_features_in_:
            raise InputError(
                f"X has {data.sets.in_features} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )
        self._check_names(data.sets.feature_names)
        known = self._covariate_names()
        check_same(data.sets, self.spec_.covariates, known, who=type(self).__name__)
        return data

    def _covariate_names(self) -> Sequence[str] | None:
        if self.schema_ is not None:
            return self.schema_.covariate_names
        names: Sequence[str] | None = self.config_.data.get("covariate_names")
        return names

    def check_sizes(self, sets: Sets) -> None:
        """Warn of sets that are smaller or larger than all training sets."""
        if text := other_sizes(sets.sizes, self.config_.sizes, lambda k: named(sets, k)):
            warnings.warn(text, SizeWarning, stacklevel=3)

    def _check_split(self, sets: Sets) -> None:
        """Warn of parts of training sets: a split of rows leaves the rest of them in the test."""
        if sets.ids is None or self.training_ids_ is None:
            return
        cut = np.isin(sets.ids, self.training_ids_) & ~are_seen(sets, self.training_keys_)
        if cut.any():
            warnings.warn(
                f"{cut.sum()} of {len(sets)} sets, e.g. {named(sets, int(np.argmax(cut)))}, have "
                "the name of a training set, but other rows: if a split cut sets apart, the score "
                "is too good; split whole sets, by SetKFold or GroupKFold",
                SplitWarning,
                stacklevel=4,
            )

    def _check_names(self, names: Sequence[str] | None) -> None:
        """Refuse other feature names: they encode categories and offsets too."""
        if names is None or not hasattr(self, "feature_names_in_"):
            return
        for k, (name, known) in enumerate(zip(names, self.feature_names_in_, strict=True)):
            if name != known:
                raise InputError(
                    f"feature {k} (from 0) of X is {name!r}, but {type(self).__name__} was fitted "
                    f"with {known!r} there; read X as the training data were read: by its schema, "
                    "read_table(X, schema)"
                )

    def raw(self, X: Any) -> Array:
        """Return network outputs, sets x outputs: amounts, or logits."""
        sets = self.read(X).sets
        self.check_sizes(sets)
        return mean_prediction(self.model_, sets, Orders.averaging(self.n_orders_))

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Sets, Array, Array | None]:
        """Return sets, their labels as `predict` would give them, and weights, for `score`."""
        data = self.read(X, labels=y is None)
        self._check_split(data.sets)
        labels = labels_of(y, data)
        if self.classifies and y is None and data.classes is not None:
            labels = np.array(data.classes)[labels.astype(np.int64)]
        labels = self._comparable(labels, data.sets)
        # Every set counts alike unless weights are given.
        sets = replace(data.sets, y=None, weights=None)
        if sample_weight is not None:
            sets = weighted(sets, weights_of(sample_weight, data))
        return sets, labels, sets.weights

    def _comparable(self, labels: Array, sets: Sets) -> Array:
        """Return labels in the type of predictions."""
        return labels

    def set_ids(self, X: Any) -> Array:
        """Return the name of every set, in the order of `predict` and `predict_proba`.

        Sets of a table are in the order of their first rows; those of a list are numbered.
        """
        sets = self.read(X).sets
        return np.arange(len(sets)) if sets.ids is None else np.asarray(sets.ids)

    def added_values(self, X: Any) -> Array:
        """Return the value each instance adds, in the unit of the label (for classes: in logits).

        One value (or one per output) for every instance in the order of X: array after array, or
        row after row of a table. The values of a set sum to its prediction (its logits) minus
        `baseline_`.
        """
        data = self.read(X)
        self.check_sizes(data.sets)
        orders = Orders.averaging(self.n_orders_)
        values = data.by_row(mean_added_values(self.model_, data.sets, orders))
        return values[:, 0] if values.shape[1] == 1 else values

    def output_names(self) -> list[str]:
        """Return the name of each output: a target column, or a class (of two, the second)."""
        return self.target_.output_names

    def to_sets(self, X: Any) -> Sets:
        """Return the sets of X as the network reads them, with labels if X has usable ones."""
        return self.read_known(X).sets

    def read_known(self, X: Any) -> SetData:
        """Read X with labels if it has usable ones."""
        if not isinstance(X, Sets):
            try:
                return self.read(X, labels=True)
            except InputError:  # labels are optional here; other faults are raised below
                pass
        return self.read(X)

    def explain(
        self,
        X: Any,
        *,
        method: str = "added",
        orders: Orders | int | None = None,
        seed: int = 0,
        output: int | str | None = None,
    ) -> Explanation:
        """Explain predictions by one value per instance, in the unit of the label (or in logits).

        Parameters
        ----------
        X
            The sets, as in `predict`.
        method
            `added` for added values, `shapley` for Shapley values.
        orders
            For `added`: the number of random orders to average over, or any `Orders`; by default
            those of the predictions. For `shapley`: None for exact values, or a number of orders.
        seed
            Random seed of the orders.
        output
            The label or class to explain, by name or index. Required if there are several.
        """
        return explain_estimator(self, X, method=method, orders=orders, seed=seed, output=output)

    def save(self, folder: str | Path, *, force: bool = False) -> Run:
        """Write the fitted network as a run folder; `capnets.load` and `load` read it."""
        check_is_fitted(self, "model_")
        run = Run.create(folder, self.config_, force=force)
        with run.lock():
            run.write_history(self.history_)
            run.write_weights(self.model_)
            if self.training_keys_ is not None:
                write_keys(run.folder, self.training_keys_)
            run.finish({"epochs": len(self.history_)})
        return run
