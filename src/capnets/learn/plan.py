"""Plan a training: decide every setting in one place, and record it with the run.

All defaults are decided here, and they depend on the problem. If labels are computed exactly from
the instances, the recipe replays hard sets and added values cannot be negative. If labels are
measured, settings are the preset for the number of sets (`capnets.training.presets`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.learn.options import Options
from capnets.learn.problem import INSTANCES, Problem
from capnets.models import MODELS, ModelSpec
from capnets.models.capacity import ACTIVATIONS
from capnets.models.sorted import BY_WORTH
from capnets.nn.encoders import width_for
from capnets.nn.projection import COMPONENTS
from capnets.runs import RunConfig
from capnets.sets import Sets
from capnets.sets.fingerprint import fingerprint
from capnets.training.losses import find_loss
from capnets.training.presets import SOME_SETS, Preset, preset_for
from capnets.training.priors import Consistent, Prior, prior_from_dict
from capnets.training.recipe import Recipe
from capnets.training.recipe import recipe as find_recipe

__all__ = ["DEFAULT_MODEL", "EXACT", "EXACT_MODEL", "Plan", "make_plan"]

#: Default networks for labels that are computed exactly, and for all others. If all sets have one
#: size, exact labels give C-DeepSet values within .05; those of C-GRU are off by 1.6 to 2.8.
EXACT_MODEL, DEFAULT_MODEL = "c-deepset", "c-gru"

#: Numbers (instances times features) above which the instances of a step are limited.
LARGE_STEP = 2**25

#: Names of teachers that `capnets.learn.teacher` fits to the training sets.
TEACHERS = ("pooled",)

#: Preset for labels that are computed from the instances.
EXACT = Preset("muon", hidden=32, layers=3, dropout=0.0, members=1, orders=1)

#: Default batch size for survival: Cox's likelihood compares the sets of a batch with each other.
JOINT_BATCH = 128
#: Share of the training sets to hold out for early stopping, unless another one is asked for.
VALID_SHARE = 0.1


@dataclass(frozen=True)
class Plan:
    """Everything that was chosen for a training.

    Parameters
    ----------
    model
        The network.
    recipe
        How it is trained.
    loss
        The training loss.
    orders
        Random orders that predictions are averaged over; 1 keeps the given order.
    seed
        Seed of initial weights, orders and splits.
    priors
        Prior knowledge about added values, as penalties.
    valid_share
        Share of the training sets to hold out for validation, if the problem has none.
    temperatures
        Divisor of the logits of every member, from inner folds (see `capnets.learn.choice`). If
        empty, logits are not divided.
    teacher
        Teacher that labels additional subsets (see `capnets.learn.teacher`), or None.
    choice
        Record of the networks that were compared, and why this one was chosen.
    """

    model: ModelSpec
    recipe: Recipe
    loss: str = "squared"
    orders: int = 1
    seed: int = 0
    priors: tuple[Prior, ...] = ()
    valid_share: float = 0.0
    temperatures: tuple[float, ...] = ()
    teacher: str | None = None
    choice: dict[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, config: RunConfig) -> Plan:
        """Return the plan that a run records; the validation share is not recorded."""
        return cls(
            model=config.model,
            recipe=config.recipe,
            loss=config.loss,
            orders=int(config.data.get("orders", 1)),
            seed=config.seed,
            priors=tuple(prior_from_dict(prior) for prior in config.priors),
            temperatures=_temperatures(config),
            teacher=config.data.get("taught_by"),
            choice=config.data.get("choice"),
        )

    @property
    def temperature(self) -> float:
        """Mean temperature of the members; 1 if logits are not divided."""
        return float(np.mean(self.temperatures)) if self.temperatures else 1.0

    def config(self, problem: Problem) -> RunConfig:
        """Return the plan as a run records it, with the origin of the data."""
        return RunConfig(
            model=self.model,
            recipe=self.recipe,
            seed=self.seed,
            # As JSON gives it back, so that it can be compared with a recorded plan.
            data=json.loads(json.dumps(self._data(problem))),
            loss=self.loss,
            priors=tuple(prior.to_dict() for prior in self.priors),
        )

    def _data(self, problem: Problem) -> dict[str, Any]:
        if "task" in problem.origin:  # the spec of a task determines its sets
            return problem.origin | ({} if self.orders == 1 else {"orders": self.orders})
        schema, names = problem.schema, problem.train.feature_names
        data = {
            "schema": None if schema is None else schema.to_dict(),
            "orders": self.orders,
            **problem.target.to_data(),
            "fingerprint": fingerprint(problem.train),
            "sets": len(problem.train),
            "sizes": [int(problem.train.sizes.min()), int(problem.train.sizes.max())],
            **problem.origin,
        }
        if schema is None and names is not None:
            data["feature_names"] = list(names)
        if schema is None and problem.train.covariate_names is not None:
            data["covariate_names"] = list(problem.train.covariate_names)
        if self.temperatures:
            data["temperatures"] = list(self.temperatures)
        if self.teacher is not None:
            data["taught_by"] = self.teacher
        if self.choice is not None:
            data["choice"] = self.choice
        return data


def _temperatures(config: RunConfig) -> tuple[float, ...]:
    if "temperature" in config.data:  # runs before 2026-11-18: one for all members
        return (float(config.data["temperature"]),) * config.model.members
    return tuple(map(float, config.data.get("temperatures", ())))


def make_plan(problem: Problem, options: Options | None = None) -> Plan:
    """Decide everything that the options leave open."""
    options = options or Options()
    if problem.target.kind == "count" and options.model is None:
        raise InputError("loss 'poisson': name a network, such as c-gru (-m c-gru)")
    name = options.model or (EXACT_MODEL if problem.exact else DEFAULT_MODEL)
    _check_order_settings(name, options)
    preset = EXACT if problem.exact else preset_for(len(problem.train), problem.train.in_features)
    return Plan(
        model=_network(name, problem, options, preset),
        recipe=_recipe(problem, options, preset),
        loss=_loss(name, problem, options),
        orders=_orders(problem, options, preset),
        seed=options.seed,
        priors=options.priors,
        valid_share=_valid_share(problem, options),
        teacher=_teacher(problem, options),
    )


def _loss(name: str, problem: Problem, options: Options) -> str:
    asked, default = options.loss, problem.target.loss
    if name == "c-trees" and "poisson" in (asked, default):
        raise InputError("loss 'poisson': trees grow by squared errors; use c-pool")
    if asked is None or asked == default:
        return default
    if problem.target.kind != "amount":
        raise InputError(f"loss {asked!r}: this target is learned by {default!r}; leave it out")
    found = find_loss(asked)
    if not found.scaled:
        raise InputError(
            f"loss {asked!r}: its network does not predict amounts; use squared, absolute, huber, "
            "quantile:0.9 or poisson, or train by `capnets.training.fit`"
        )
    if name == "c-trees":
        raise InputError(f"loss {asked!r}: trees grow by squared errors; use c-pool")
    return asked


def _teacher(problem: Problem, options: Options) -> str | None:
    if options.teacher is None:
        return None
    if options.teacher not in TEACHERS:
        raise unknown("teacher", options.teacher, TEACHERS)
    if problem.train.covariates is not None:
        raise InputError("teacher: sets with covariates cannot be taught; leave one of both out")
    untaught = problem.exact or problem.target.kind in ("survival", "count")
    if untaught or problem.instances == "pictures":
        raise InputError("teacher: only amounts and classes of rows can be taught; leave it out")
    return options.teacher


def _check_order_settings(name: str, options: Options) -> None:
    """Raise for settings about order that cannot have an effect."""
    about_order = {
        "sort": options.sort is not None,
        "the prior 'consistent'": any(isinstance(p, Consistent) for p in options.priors),
    }
    asked = [setting for setting, given in about_order.items() if given]
    if asked and not ModelSpec(name, hidden=1, layers=1).build(0).ordered:
        raise InputError(
            f"{' and '.join(asked)}: no order changes what {name} predicts; leave it out"
        )
    if len(asked) > 1:
        raise InputError(
            "the prior 'consistent': sorted instances have one order only; leave it out, "
            "or do not sort"
        )


def _network(name: str, problem: Problem, options: Options, preset: Preset) -> ModelSpec:
    inputs = _inputs(problem, options)
    features = problem.train.in_features
    width = width_for(COMPONENTS if inputs == "project" else features)
    chosen: dict[str, Any] = {
        "activation": "abs" if problem.exact else "identity",
        "aggregation": "sum",
        "baseline": _baseline(name, problem, options),
        "hidden": preset.hidden,
        "layers": preset.layers,
        "dropout": preset.dropout if problem.instances == "rows" else 0.0,
        "members": preset.members if problem.instances == "rows" else 1,
    }
    asked = {key: value for key in chosen if (value := getattr(options, key)) is not None}
    if problem.target.classifies and asked.get("activation") in {*ACTIVATIONS} - {"identity"}:
        raise InputError(
            f"activation {options.activation!r} gives no negative values, and logits need them; "
            "use activation='identity'"
        )
    if problem.target.kind != "amount" and options.aggregation == "any":
        raise InputError(
            "aggregation 'any' predicts probabilities, but a classifier learns logits, and counts "
            "and times are learned as logarithms; use SetRegressor with labels 0 and 1"
        )
    return ModelSpec(
        name,
        in_features=features if inputs != "pictures" else 64,
        outputs=problem.target.outputs,
        inputs=inputs,
        order=_sorting(problem, options.sort),
        width=width if problem.instances == "rows" else None,
        covariates=problem.train.n_covariates,
        **chosen | asked,
    )


def _inputs(problem: Problem, options: Options) -> str:
    """Return the first module of the network.

    If there are more features than instances, instances are projected on principal components,
    unless covariates, priors or a sort key need the features themselves.
    """
    sets = problem.train
    named = sets.n_covariates or options.priors or options.sort is not None
    wide = sets.in_features > max(2 * COMPONENTS, len(sets.index))
    if problem.instances == "rows" and wide and not named:
        return "project"
    return INSTANCES[problem.instances]


def _baseline(name: str, problem: Problem, options: Options) -> str:
    """Return the default baseline.

    It is learned if there are covariates, and for counts, whose values add to a logarithm; but only
    if the network allows it.
    """
    signed = options.activation in (None, "identity") and not problem.exact
    entry = MODELS.get(name)
    allowed = entry is not None and "learned" in entry.baselines
    wanted = problem.train.n_covariates or problem.target.kind == "count"
    return "learned" if wanted and signed and allowed else "none"


def _sorting(problem: Problem, sort: str | int | None) -> str | int:
    """Return the order of instances as `ModelSpec` names it."""
    if sort is None:
        return "given"
    if problem.order:
        raise InputError(
            f"instances cannot be read in the order of {problem.order!r} "
            f"and sorted by {sort!r}; leave one of the two out"
        )
    names = problem.train.feature_names or ()
    if sort in names:
        return list(names).index(str(sort))
    if problem.schema is not None and sort in problem.schema.numbers:
        return problem.schema.numbers[sort]
    if isinstance(sort, str) and sort != BY_WORTH:
        raise unknown("feature", sort, [BY_WORTH, *names])
    return sort


def _recipe(problem: Problem, options: Options, preset: Preset) -> Recipe:
    chosen = options.recipe or {}
    if isinstance(chosen, Mapping):
        joint = {"batch_size": JOINT_BATCH} if problem.target.kind == "survival" else {}
        default = find_recipe(preset.recipe, epochs=preset.epochs)
        found = Recipe.from_dict(default.to_dict() | joint | dict(chosen))
    else:
        found = find_recipe(chosen) if isinstance(chosen, str) else chosen
    if options.epochs is not None:
        found = replace(found, epochs=options.epochs)
    if found.batch_instances is None and problem.instances == "rows":
        found = replace(found, batch_instances=_batch_instances(problem.train, found))
    # An order column also determines the order during training.
    return replace(found, reshuffle=False) if problem.order else found


def _batch_instances(sets: Sets, recipe: Recipe) -> int | None:
    """Return a limit on the instances per step where a step would need much memory."""
    width = math.prod(sets.feature_shape) + sets.n_covariates
    sizes = sets.sizes
    if recipe.sample_instances is not None:
        sizes = np.minimum(sizes, recipe.sample_instances)
    large = recipe.batch_size * float(sizes.mean()) * width > LARGE_STEP
    return max(1, LARGE_STEP // width) if large else None


def _orders(problem: Problem, options: Options, preset: Preset) -> int:
    if problem.order or options.sort is not None:
        return 1  # there is only one order
    default = preset.orders if problem.instances == "rows" else 1
    return int(default if options.orders is None else options.orders)


def _valid_share(problem: Problem, options: Options) -> float:
    wanted = options.early_stopping
    few = len(problem.train) < SOME_SETS
    if problem.valid is not None or wanted is False or (wanted == "auto" and few):
        return 0.0
    return VALID_SHARE if isinstance(wanted, bool | str) else float(wanted)
