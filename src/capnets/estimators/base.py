"""Shared part of both estimators: from X to a problem, from parameters to options, saving."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from capnets.errors import InputError, SizeWarning, unknown
from capnets.estimators.explaining import explain_estimator
from capnets.estimators.inputs import Given, read
from capnets.estimators.per_set import labels_of, named, weighted, weights_of
from capnets.estimators.problems import data_problem
from capnets.explain import Explanation
from capnets.ingest import Columns, Schema
from capnets.learn import Options, Plan, Problem, Target, choose, learn, make_plan
from capnets.learn.averaging import mean_added_values, mean_prediction
from capnets.learn.seen import read_keys, set_keys, write_keys
from capnets.learn.teacher import distill, pooled_teacher
from capnets.models import ModelSpec, SetModel
from capnets.runs import Run, RunConfig
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders
from capnets.training.callbacks import Callback, EpochEnd
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

__all__ = ["SetEstimator"]


class SetEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of `SetRegressor` and `SetClassifier`."""

    classifies: ClassVar[bool]

    model_: SetModel
    plan_: Plan
    target_: Target
    schema_: Schema | None
    config_: RunConfig
    n_features_in_: int
    feature_names_in_: Array
    history_: list[dict[str, Any]]
    training_keys_: Array | None

    def __init__(
        self,
        model: str | None = None,
        *,
        columns: Columns | str | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        activation: str = "identity",
        aggregation: str | None = None,
        baseline: str | None = None,
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
        self.aggregation = aggregation
        self.baseline = baseline
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

    def __sklearn_tags__(self) -> Any:
        """Declare sets as input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True  # as many instances in every set
        return tags

    # Training -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, teacher: Any = None) -> Self:
        """Train on sets and their labels.

        Parameters
        ----------
        X
            A list of 2-D arrays (instances x features), `Sets`, or a table (a frame or a file)
            whose set column is named.
        y
            One label, or a row of labels, per set. Optional if X has them: in `Sets`, or in named
            target columns. For a table also one per row, constant within a set. A pandas object
            indexed by the names of the sets, or like the rows of the table, is aligned by its
            index; anything else is in the order of `set_ids`.
        sample_weight
            One weight per set, given in the same ways.
        teacher
            Predictor that labels additional subsets: `pooled` (a forest and gradient boosting on
            pooled statistics), a fitted set estimator, or a function from `Sets` to amounts or
            probabilities. See `capnets.learn.teacher`.
        """
        problem = self.problem(X, y, sample_weight)
        plan = choose(problem, self.options(), progress=self._show_choice())
        self.training_keys_ = set_keys(problem.train)
        if teacher is not None:
            problem, plan = self._distilled(problem, plan, teacher)
        with self._progress(plan) as callbacks:
            model, history = learn(problem, plan, callbacks=callbacks)
        return self._adopt(model, history, plan.config(problem), plan)

    def _distilled(self, problem: Problem, plan: Plan, teacher: Any) -> tuple[Problem, Plan]:
        """Return the problem with sets that a teacher labels, and a plan for their number."""
        if isinstance(teacher, str):
            if teacher != "pooled":
                raise unknown("teacher", teacher, ["pooled"])
            teacher = pooled_teacher(problem, seed=plan.seed)
        elif isinstance(teacher, SetEstimator):
            teacher = teacher.predict_proba if teacher.classifies else teacher.predict
        distilled = distill(problem, teacher, seed=plan.seed)
        spec = plan.model
        named = replace(
            self.options(), model=spec.name, aggregation=spec.aggregation, baseline=spec.baseline,
            members=spec.members, early_stopping=False,
        )  # fmt: skip
        return distilled, replace(make_plan(distilled, named), choice=plan.choice)

    def problem(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, folder: Path | None = None
    ) -> Problem:
        """Return what `fit` would learn from X and y.

        With a `folder`, the instances of a table are kept there and mapped into memory.
        """
        return data_problem(
            X, y, columns=self.columns, classify=self.classifies, sample_weight=sample_weight,
            class_weight=getattr(self, "class_weight", None), folder=folder,
        )  # fmt: skip

    def options(self) -> Options:
        """Return the settings that the parameters ask for."""
        return Options(
            model=self.model, hidden=self.hidden, layers=self.layers, activation=self.activation,
            aggregation=self.aggregation, baseline=self.baseline, dropout=self.dropout,
            members=self.members, orders=self.orders, sort=self.sort,
            priors=tuple(self.priors or ()), recipe=self.recipe, epochs=self.epochs,
            early_stopping=self.early_stopping, validation_fraction=self.validation_fraction,
            calibrate=getattr(self, "calibrate", True), seed=seed_of(self.random_state),
        )  # fmt: skip

    def _adopt(
        self, model: SetModel, history: list[dict[str, Any]], config: RunConfig, plan: Plan
    ) -> Self:
        """Take over a trained network and everything that its run records."""
        schema = config.data.get("schema")
        self.schema_ = None if schema is None else Schema.from_dict(schema)
        names: Any = config.data.get("feature_names")
        targets: tuple[str, ...] = ()
        if self.schema_ is not None:
            names, targets = self.schema_.feature_names, self.schema_.columns.target
        # scikit-learn has no such attribute where features have no names.
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.target_ = Target.from_data(config.data, config.model.outputs, targets)
        self.model_, self.history_, self.config_, self.plan_ = model, history, config, plan
        self.n_features_in_ = config.model.in_features
        return self

    def _show_choice(self) -> Any:
        if not self.verbose:
            return None
        return lambda what, done, total: print(f"{what}: {done} of {total} trainings")

    @contextmanager
    def _progress(self, plan: Plan) -> Iterator[list[Callback]]:
        if not self.verbose:
            yield []
            return
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            total = plan.recipe.epochs * plan.model.members
            task = bar.add_task(f"{plan.model.name} on sets", total=total)
            yield [EpochEnd(lambda line: bar.update(task, advance=1))]

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
        """Prediction for the empty set, per output; added values are counted from here."""
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

    # Prediction ---------------------------------------------------------------------------------

    def read(self, X: Any, *, labels: bool = False) -> Given:
        """Read X the way the training data were read."""
        check_is_fitted(self, "model_")
        schema = self.schema_
        if schema is not None:  # predictions need neither groups nor weights
            schema = replace(schema, columns=replace(schema.columns, group=None, weight=None))
        given = read(X, schema or self.columns, labels=labels)
        if given.sets.in_features != self.n_features_in_:
            raise InputError(
                f"X has {given.sets.in_features} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )
        self._check_names(given.sets.feature_names)
        return given

    def check_sizes(self, sets: Sets) -> None:
        """Warn of sets that are smaller or larger than all training sets."""
        low, high = self.config_.data.get("sizes", (0, np.inf))
        outside = (sets.sizes < low) | (sets.sizes > high)
        if outside.any():
            k = int(np.argmax(outside))
            warnings.warn(
                f"{outside.sum():,} of {len(sets):,} sets are smaller or larger than all training "
                f"sets ({low} to {high} instances), e.g. {named(sets, k)} with {sets.sizes[k]}: "
                "their predictions are extrapolations",
                SizeWarning,
                stacklevel=3,
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
        given = self.read(X, labels=y is None)
        labels = labels_of(y, given)
        if self.classifies and y is None and given.classes is not None:
            labels = np.array(given.classes)[labels.astype(np.int64)]
        labels = self._comparable(labels, given.sets)
        # Every set counts alike unless weights are given.
        sets = replace(given.sets, y=None, weights=None)
        if sample_weight is not None:
            sets = weighted(sets, weights_of(sample_weight, given))
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
        given = self.read(X)
        self.check_sizes(given.sets)
        orders = Orders.averaging(self.n_orders_)
        values = given.by_row(mean_added_values(self.model_, given.sets, orders))
        return values[:, 0] if values.shape[1] == 1 else values

    def output_names(self) -> list[str]:
        """Return the name of each output: a target column, or a class (of two, the second)."""
        return self.target_.output_names

    def to_sets(self, X: Any) -> Sets:
        """Return the sets of X as the network reads them, with labels if X has usable ones."""
        if not isinstance(X, Sets):
            try:
                return self.read(X, labels=True).sets
            except InputError:  # labels are optional here; other faults are raised below
                pass
        return self.read(X).sets

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

    # Saving -------------------------------------------------------------------------------------

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

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a fitted estimator from a run folder."""
        run = Run(folder)
        config = run.config
        if config.data.get("estimator") != cls.__name__:
            raise InputError(f"{folder} is not a saved {cls.__name__}")
        plan, spec = Plan.of(config), config.model
        estimator = cls(
            spec.name, hidden=spec.hidden, layers=spec.layers, activation=spec.activation,
            aggregation=spec.aggregation, baseline=spec.baseline,
            dropout=spec.dropout, members=spec.members, orders=plan.orders,
            sort=None if spec.order == "given" else spec.order,
            priors=list(plan.priors) or None, recipe=plan.recipe, random_state=plan.seed,
        )  # fmt: skip
        estimator._adopt(run.model, run.history, config, plan)
        estimator.training_keys_ = read_keys(run.folder)
        if estimator.schema_ is not None:
            estimator.columns = estimator.schema_.columns
        return estimator


def seed_of(random_state: Any) -> int:
    """Return a seed from anything that scikit-learn takes as a random state."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InputError(f"random_state must not be negative, but is {random_state}")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(f"random_state: {error}") from error
