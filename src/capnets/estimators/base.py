"""What both estimators share: from X to sets, from parameters to a network, training, saving."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from capnets.errors import InputError
from capnets.estimators import planning
from capnets.estimators.averaging import mean_added_values, mean_prediction
from capnets.estimators.explaining import explain_estimator
from capnets.estimators.inputs import Given, fingerprint, read
from capnets.estimators.per_set import labels_of, weighted, weights_of
from capnets.explain import Explanation
from capnets.ingest import Columns, Schema, hold_out
from capnets.models import ModelSpec, SetModel
from capnets.runs import Run, RunConfig
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders
from capnets.training.ensemble import fit_members
from capnets.training.presets import SOME_SETS, preset_for
from capnets.training.priors import Prior, prior_from_dict
from capnets.training.recipe import Recipe

__all__ = ["SetEstimator"]


class SetEstimator(BaseEstimator):  # type: ignore[misc]
    """Everything but the meaning of y; see `SetRegressor` and `SetClassifier`."""

    model_: SetModel
    spec_: ModelSpec
    recipe_: Recipe
    schema_: Schema | None
    n_features_in_: int
    feature_names_in_: Array
    n_orders_: int
    seed_: int
    loss_: str
    fingerprint_: str | None
    history_: list[dict[str, Any]]

    def __init__(
        self,
        model: str = "c-gru",
        *,
        columns: Columns | str | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        activation: str = "identity",
        dropout: float | None = None,
        members: int | None = None,
        orders: int | None = None,
        sort: str | int | None = None,
        priors: Sequence[Prior] | None = None,
        recipe: str | Recipe | Mapping[str, Any] | None = None,
        epochs: int | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.columns = columns
        self.hidden = hidden
        self.layers = layers
        self.activation = activation
        self.dropout = dropout
        self.members = members
        self.orders = orders
        self.sort = sort
        self.priors = priors
        self.recipe = recipe
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    # Training -----------------------------------------------------------------------------------

    classifies = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on sets and their labels.

        Parameters
        ----------
        X
            A list of 2-D arrays (instances x features), `Sets`, or a table (a frame, or a file)
            whose set column was named.
        y
            One label, or a row of labels, per set. May be left out if X has them: in `Sets`, or in
            target columns that were named. For a table also one per row, constant within a set.
            What pandas has indexed by the names of the sets, or like the rows of the table, is
            looked up by its index; all else is in the order of `set_ids`.
        sample_weight
            One weight per set, given in the same ways.
        """
        given = self._given(X, y)
        return self._learn(self._plan(given, y, sample_weight), given)

    def _given(self, X: Any, y: Any, *, folder: Path | None = None) -> Given:
        labels, classify = y is None, self.classifies
        return read(X, self.columns, labels=labels, classify=classify, learning=True, folder=folder)

    def _targets(self, labels: Array, given: Given | None) -> tuple[Array, str, int, Array | None]:
        """Labels as numbers, the loss, the number of outputs, and weights of their own.

        `given` is where the labels come from, if they come from X itself.
        """
        raise NotImplementedError

    def _plan(self, given: Given, y: Any, sample_weight: Any = None) -> Sets:
        """Choose network and recipe; returns the sets with labels and weights."""
        numbers, loss, outputs, balance = self._targets(
            labels_of(y, given), given if y is None else None
        )
        weights = [given.sets.weights, balance]
        if sample_weight is not None:
            weights.append(weights_of(sample_weight, given))
        sets = replace(given.sets, y=numbers.astype(np.float32), weights=None)
        sets = weighted(sets, *weights)
        sets.check_finite()
        preset = preset_for(len(sets), sets.in_features)
        self.schema_ = self._schema(given)
        self.n_features_in_ = sets.in_features
        self._name_features(sets.feature_names)
        self.spec_ = planning.network(self, given, preset, outputs=outputs)
        self.recipe_ = planning.recipe(self, given, preset)
        self.n_orders_ = planning.orders(self, given, preset)
        self.seed_ = planning.seed(self.random_state)
        self.loss_ = loss
        self.fingerprint_ = fingerprint(sets)
        return sets

    def _schema(self, given: Given) -> Schema | None:
        """How later tables are read; their target may name the classes that y named here."""
        schema = given.schema
        if schema is None or schema.classes or len(schema.columns.target) != 1:
            return schema
        if not self.classifies or self.multilabel_:
            return schema
        return replace(schema, classes=tuple(self.classes_.tolist()))

    def _name_features(self, names: Sequence[str] | None) -> None:
        # scikit-learn has no attribute where there are no names, not even one of an earlier fit.
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _learn(
        self,
        sets: Sets,
        given: Given,
        *,
        checkpoint: Path | None = None,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Self:
        """Train what was planned."""
        train, valid = self._validation(sets, given)
        self.model_ = self.spec_.build(self.seed_)
        with self._progress() as bar:
            self.history_ = fit_members(
                self.model_, train, valid, recipe=self.recipe_, seed=self.seed_,
                loss=self.loss_, priors=self.priors or (), checkpoint=checkpoint,
                progress=progress or bar,
            )  # fmt: skip
        return self

    def _validation(self, sets: Sets, given: Given) -> tuple[Sets, Sets | None]:
        wanted = self.early_stopping
        if wanted not in (True, False, "auto"):
            raise InputError(f"early_stopping must be True, False or 'auto', not {wanted!r}")
        if wanted is False or (wanted == "auto" and len(sets) < SOME_SETS):
            return sets, None
        return hold_out(
            sets,
            self.validation_fraction,
            seed=self.seed_,
            groups=given.groups,
            stratify=self._strata(sets),
        )

    def _strata(self, sets: Sets) -> Array | None:
        """What validation sets should have in the same shares as training sets."""
        return None

    @contextmanager
    def _progress(self) -> Iterator[Any]:
        if not self.verbose:
            yield None
            return
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            total = self.recipe_.epochs * self.spec_.members
            task = bar.add_task(f"{self.model} on sets", total=total)
            yield lambda line: bar.update(task, advance=1)

    # Using --------------------------------------------------------------------------------------

    def _read(self, X: Any, *, labels: bool = False) -> Given:
        check_is_fitted(self, "model_")
        schema = self.schema_
        if schema is not None:  # what is predicted and measured knows neither groups nor weights
            schema = replace(schema, columns=replace(schema.columns, group=None, weight=None))
        given = read(X, schema or self.columns, labels=labels)
        if given.sets.in_features != self.n_features_in_:
            raise InputError(
                f"X has {given.sets.in_features} features, but {type(self).__name__} "
                f"was fitted with {self.n_features_in_}"
            )
        self._check_names(given.sets.feature_names)
        return given

    def _check_names(self, names: Sequence[str] | None) -> None:
        """Names tell categories and offsets too: other names are other numbers."""
        if names is None or not hasattr(self, "feature_names_in_"):
            return
        for k, (name, known) in enumerate(zip(names, self.feature_names_in_, strict=True)):
            if name != known:
                raise InputError(
                    f"feature {k} (from 0) of X is {name!r}, but {type(self).__name__} was fitted "
                    f"with {known!r} there; read X as what was trained on: by its schema, "
                    "read_table(X, schema)"
                )

    def _raw(self, X: Any) -> Array:
        """Sets x outputs: amounts, or logits."""
        sets = self._read(X).sets
        return mean_prediction(self.model_, sets, Orders.averaging(self.n_orders_))

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Sets, Array, Array | None]:
        """Sets, their labels as `predict` would give them, and weights: what `score` compares."""
        given = self._read(X, labels=y is None)
        labels = labels_of(y, given)
        if self.classifies and y is None and given.classes is not None:
            labels = np.array(given.classes)[labels.astype(np.int64)]
        labels = self._comparable(labels, given.sets)
        # What is measured counts every set alike, unless weights are given for it.
        sets = replace(given.sets, y=None, weights=None)
        if sample_weight is not None:
            sets = weighted(sets, weights_of(sample_weight, given))
        return sets, labels, sets.weights

    def _comparable(self, labels: Array, sets: Sets) -> Array:
        """Labels in the type in which `predict` answers."""
        return labels

    def set_ids(self, X: Any) -> Array:
        """The name of every set, in the order in which `predict` and `predict_proba` answer.

        The sets of a table come as they first appear in it; those of a list as listed, numbered.
        """
        sets = self._read(X).sets
        return np.arange(len(sets)) if sets.ids is None else np.asarray(sets.ids)

    def added_values(self, X: Any) -> Array:
        """What each instance adds, in the unit of the label (for classes: in logits).

        One value (or one per output) for every instance as X lists them: array after array, or row
        after row of a table. Over a set they sum to its prediction (its logits).
        """
        given = self._read(X)
        orders = Orders.averaging(self.n_orders_)
        values = given.by_row(mean_added_values(self.model_, given.sets, orders))
        return values[:, 0] if values.shape[1] == 1 else values

    def output_names(self) -> list[str]:
        """What each output stands for: a target column, or a class."""
        columns = None if self.schema_ is None else self.schema_.columns.target
        if columns is None or len(columns) != self.spec_.outputs:
            return [str(k) for k in range(self.spec_.outputs)]
        return list(columns)

    def to_sets(self, X: Any) -> Sets:
        """Return the sets of X as the network reads them, with labels if X has usable ones."""
        if not isinstance(X, Sets):
            try:
                return self._read(X, labels=True).sets
            except InputError:  # labels are optional here; other faults are raised below
                pass
        return self._read(X).sets

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

    # Keeping ------------------------------------------------------------------------------------

    def save(self, folder: str | Path, *, force: bool = False) -> Run:
        """Write the fitted network as a run folder; `capnets.load` and `load` read it."""
        check_is_fitted(self, "model_")
        run = Run.create(folder, self._config(), force=force)
        run.write_history(self.history_)
        run.write_weights(self.model_)
        run.finish({"epochs": len(self.history_)})
        return run

    def _config(self, **about: Any) -> RunConfig:
        """What was planned, as it is recorded."""
        data = {
            "schema": None if self.schema_ is None else self.schema_.to_dict(),
            "orders": self.n_orders_,
            "estimator": type(self).__name__,
            "labels": self._labels(),
            "fingerprint": self.fingerprint_,
            **about,
        }
        if self.schema_ is None and hasattr(self, "feature_names_in_"):
            data["feature_names"] = list(self.feature_names_in_)
        # As JSON gives it back, so that a run can be compared with what was recorded.
        data = json.loads(json.dumps(data))
        priors = tuple(prior.to_dict() for prior in self.priors or ())
        return RunConfig(
            model=self.spec_, recipe=self.recipe_, seed=self.seed_, data=data, loss=self.loss_,
            priors=priors,
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A fitted estimator from a run folder that `save` wrote."""
        run = Run(folder)
        data = run.config.data
        if data.get("estimator") != cls.__name__:
            raise InputError(f"{folder} is not a saved {cls.__name__}")
        spec = run.config.model
        estimator = cls(
            spec.name, hidden=spec.hidden, layers=spec.layers, activation=spec.activation,
            dropout=spec.dropout, members=spec.members, orders=data["orders"],
            sort=None if spec.order == "given" else spec.order,
            priors=[prior_from_dict(prior) for prior in run.config.priors] or None,
            recipe=run.config.recipe, random_state=run.config.seed,
        )  # fmt: skip
        schema = data.get("schema")
        estimator.schema_ = None if schema is None else Schema.from_dict(schema)
        if estimator.schema_ is None:
            estimator._name_features(data.get("feature_names"))
        else:
            estimator.columns = estimator.schema_.columns
            estimator._name_features(estimator.schema_.feature_names)
        estimator.model_, estimator.spec_ = run.model, spec
        estimator.recipe_, estimator.seed_ = run.config.recipe, run.config.seed
        estimator.n_orders_, estimator.loss_ = data["orders"], run.config.loss
        estimator.n_features_in_, estimator.history_ = spec.in_features, run.history
        estimator.fingerprint_ = data.get("fingerprint")
        estimator._set_labels(data["labels"])
        return estimator

    def _labels(self) -> Any:
        """What predictions mean, as JSON."""
        return None

    def _set_labels(self, labels: Any) -> None:
        """Take back what `_labels` gave."""
