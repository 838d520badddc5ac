"""Train set estimators: from X to a problem, from parameters to options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state

from capnets.errors import InputError, unknown
from capnets.estimators.fitted import FittedEstimator
from capnets.estimators.problems import data_problem
from capnets.ingest import Columns
from capnets.ingest.summary import warn_of_outliers
from capnets.learn import Options, Plan, Problem, choose, learn, make_plan
from capnets.learn.seen import read_keys, set_keys
from capnets.learn.teacher import distill, pooled_teacher
from capnets.runs import Run
from capnets.training.callbacks import Callback, EpochEnd, check_callbacks
from capnets.training.device import OneDevice, make_fabric
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

if TYPE_CHECKING:
    from capnets.training.device import Devices

__all__ = ["NETWORK", "SetEstimator"]

#: Further settings of a network that the parameter `network` takes.
NETWORK = ("layers", "activation", "dropout")


class SetEstimator(FittedEstimator):
    """Base of `SetRegressor`, `SetClassifier` and `SetSurvival`."""

    def __init__(
        self,
        model: str | None = None,
        *,
        columns: Columns | str | None = None,
        hidden: int | None = None,
        aggregation: str | None = None,
        baseline: str | None = None,
        network: Mapping[str, Any] | None = None,
        members: int | None = None,
        orders: int | None = None,
        sort: str | int | None = None,
        priors: Sequence[Prior] | None = None,
        recipe: str | Recipe | Mapping[str, Any] | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        early_stopping: bool | float | str = "auto",
        random_state: Any = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.columns = columns
        self.hidden = hidden
        self.aggregation = aggregation
        self.baseline = baseline
        self.network = network
        self.members = members
        self.orders = orders
        self.sort = sort
        self.priors = priors
        self.recipe = recipe
        self.loss = loss
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        teacher: Any = None,
        callbacks: Sequence[Callback] = (),
        fabric: Devices | None = None,
    ) -> Self:
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
        callbacks
            Hooks of the final training, such as the loggers of `capnets.training.loggers`.
        fabric
            Launched devices of lightning-fabric that share every batch; by default one device.
            Every process calls `fit` with the same arguments and ends with the same network.
        """
        check_callbacks(callbacks)
        fabric = fabric or make_fabric(device=self.device)
        problem = self.problem(X, y, sample_weight)
        warn_of_outliers(problem.train, problem.schema)
        plan = self._plan(problem, fabric)
        self.training_keys_, self.training_ids_ = set_keys(problem.train), problem.train.ids
        if teacher is not None:
            problem, plan = self._distilled(problem, plan, teacher)
        with self._progress(plan) as shown:
            hooks = [*shown, *callbacks]
            model, history = learn(problem, plan, callbacks=hooks, fabric=fabric)
        return self._adopt(model, history, plan.config(problem), plan)

    def _plan(self, problem: Problem, fabric: Devices) -> Plan:
        """Choose a plan; of several processes, the first one chooses for all."""
        if isinstance(fabric, OneDevice):
            return choose(problem, self.options(), progress=self._show_choice())
        plan = None
        if fabric.is_global_zero:
            plan = choose(problem, self.options(), progress=self._show_choice())
        agreed: Plan = fabric.broadcast(plan)  # type: ignore[assignment]
        return agreed

    def _distilled(self, problem: Problem, plan: Plan, teacher: Any) -> tuple[Problem, Plan]:
        """Return the problem with sets that a teacher labels, and a plan for their number."""
        if problem.target.kind == "count":
            raise InputError("teacher: only amounts and classes can be taught; leave it out")
        if isinstance(teacher, str):
            if teacher != "pooled":
                raise unknown("teacher", teacher, ["pooled"])
            teacher = pooled_teacher(problem, seed=plan.seed)
        elif isinstance(teacher, SetEstimator):
            teacher = teacher.predict_proba if teacher.classifies else teacher.predict
        elif not callable(teacher):
            raise InputError(
                f"teacher is {teacher!r}; expected 'pooled', a fitted set estimator or a function"
            )
        distilled = distill(problem, teacher, seed=plan.seed)
        spec = plan.model
        named = replace(
            self.options(), model=spec.name, aggregation=spec.aggregation, baseline=spec.baseline,
            members=spec.members, early_stopping=False, seed=plan.seed,
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
        if not isinstance(self.network, Mapping | None):
            raise InputError(
                f"network is {self.network!r}; expected settings by name, such as {{'layers': 2}}"
            )
        network = dict(self.network or {})
        for name in network:
            if name not in NETWORK:
                raise unknown("setting of a network", name, NETWORK)
        return Options(
            model=self.model, hidden=self.hidden, aggregation=self.aggregation,
            baseline=self.baseline, **network, members=self.members, orders=self.orders,
            sort=self.sort, priors=tuple(self.priors or ()), recipe=self.recipe, loss=self.loss,
            epochs=self.epochs, early_stopping=self.early_stopping,
            calibrate=getattr(self, "calibrate", True), seed=seed_of(self.random_state),
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a fitted estimator from a run folder."""
        run = Run(folder)
        config = run.config
        if config.data.get("estimator") != cls.__name__:
            raise InputError(f"{folder} is not a saved {cls.__name__}")
        try:
            return cls._of(run)
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Only a run without digests: an earlier version wrote it.
            raise InputError(
                f"{run.folder / 'config.json'} is damaged ({error!r}); restore it or train again"
            ) from error

    @classmethod
    def _of(cls, run: Run) -> Self:
        config = run.config
        plan, spec = Plan.of(config), config.model
        estimator = cls(
            spec.name, hidden=spec.hidden, aggregation=spec.aggregation, baseline=spec.baseline,
            network={name: getattr(spec, name) for name in NETWORK},
            members=spec.members, orders=plan.orders,
            sort=None if spec.order == "given" else spec.order,
            priors=list(plan.priors) or None, recipe=plan.recipe, random_state=plan.seed,
        )  # fmt: skip
        estimator._adopt(run.model, run.history, config, plan)
        if plan.loss not in ("squared", "logistic", "softmax", "cox"):  # those of the targets
            estimator.loss = plan.loss
        estimator.training_keys_, estimator.training_ids_ = read_keys(run.folder), None
        if estimator.schema_ is not None:
            estimator.columns = estimator.schema_.columns
        return estimator

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
            task = bar.add_task(f"{plan.model.title} on sets", total=total)
            yield [EpochEnd(lambda line: bar.update(task, advance=1))]


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
