"""Choose a network by inner cross-validation, and calibrate its probabilities.

No single form of a capacity network is best on every data set: a rating behaves like a mean, a
count like a sum. If no network is named, a short list of networks with exact added values is
compared on inner folds; each candidate is trained once per fold, without averaging. The comparison
costs at most four times the final training, so that choosing and training cost at most five times
one network.

Where sets are few, networks are overconfident. The temperature that minimizes the log loss of the
held-out predictions divides all logits of the final network, and therefore all added values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.learn.folds import FOLDS, Parts, cross_validate, make_folds
from capnets.learn.options import Options
from capnets.learn.plan import Plan, make_plan
from capnets.learn.problem import Problem
from capnets.learn.target import Target
from capnets.sets import Array
from capnets.training.presets import SOME_SETS
from capnets.training.priors import Consistent

__all__ = ["CANDIDATES", "choose", "temperature"]

#: Cost of the comparison, in trainings of the final network.
BUDGET = 4
#: Share of the sets that candidates are tested on where sets are many.
HELD_OUT = 0.2
#: Highest temperature; beyond it, predictions are the shares of the classes.
HOTTEST = 20.0

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Candidate:
    """A network to compare: its name, aggregation and baseline."""

    model: str
    aggregation: str = "sum"
    baseline: str = "learned"
    ordered: bool = True

    def plan(self, problem: Problem, options: Options) -> Plan:
        """Return the plan that trains this network."""
        asked = replace(
            options, model=self.model, aggregation=self.aggregation, baseline=self.baseline
        )
        return make_plan(problem, asked)


#: Compared networks; the first ones if the budget does not allow all.
CANDIDATES = (
    Candidate("c-gru", "mean+sum"),
    Candidate("c-deepset", "mean"),
    Candidate("c-deepset", "sum", "none"),
    Candidate("c-gru", "mean"),
    Candidate("c-deepset", "sum"),
    Candidate("c-pairs", "sum", ordered=False),
)
#: Compared networks where values must not be negative.
MONOTONE = (Candidate("c-deepset", "sum", "none"), Candidate("c-gru", "sum", "none"))


def choose(
    problem: Problem,
    options: Options | None = None,
    *,
    recorded: Plan | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Return a plan; compare networks if none is named, and calibrate classes where sets are few.

    Parameters
    ----------
    problem
        What is to be learned.
    options
        Settings that are not to be chosen.
    recorded
        Plan of an interrupted run; its choice is taken over instead of comparing again.
    progress
        Called with a title, the number of finished trainings and their total.
    """
    options = options or Options()
    if recorded is not None:
        spec = recorded.model
        plan = Candidate(spec.name, spec.aggregation, spec.baseline).plan(problem, options)
        return replace(plan, temperature=recorded.temperature, choice=recorded.choice)
    many = len(problem.train) >= SOME_SETS
    candidates = _candidates(options) if options.model is None and not problem.exact else ()
    calibrates = problem.target.classifies and options.calibrate and not many
    if not candidates and not calibrates:
        return make_plan(problem, options)
    plans = [candidate.plan(problem, options) for candidate in candidates]
    plans = plans or [make_plan(problem, options)]
    plans = plans[: BUDGET * plans[0].model.members]
    try:
        problem, parts = _parts(problem, plans, many=many)
    except InputError as error:  # too few sets: a stated default
        return replace(plans[0], choice={"reason": f"not compared: {error}"})
    raws = []
    for number, plan in enumerate(plans):

        def done(folds: int, number: int = number) -> None:
            if progress is not None:
                progress("comparing networks", number * len(parts) + folds, len(plans) * len(parts))

        one = replace(plan, model=replace(plan.model, members=1))
        raws.append(cross_validate(problem, one, parts, progress=done))
    # Calibrated first: candidates are compared by what they know, not by their confidence.
    heats = [_temperature(problem, raw, parts) if calibrates else 1.0 for raw in raws]
    losses = [_loss(problem, raw / heat, parts) for raw, heat in zip(raws, heats, strict=True)]
    best = int(np.argmin(losses))
    # The final network averages its members, which cools the logits of a single one already.
    heat = heats[best] if plans[best].model.members == 1 else float(heats[best] ** 0.5)
    chosen = replace(plans[best], temperature=float(f"{heat:.4g}"))
    if len(plans) == 1:
        return chosen
    return replace(chosen, choice=_record(plans, losses, parts))


def _candidates(options: Options) -> tuple[Candidate, ...]:
    """Return the candidates that allow the requested settings."""
    found = CANDIDATES if options.activation in (None, "identity") else MONOTONE
    ordered = options.sort is not None or any(isinstance(p, Consistent) for p in options.priors)
    return tuple(
        c
        for c in found
        if (c.ordered or not ordered)
        and options.aggregation in (None, c.aggregation)
        and options.baseline in (None, c.baseline)
    )


def _parts(problem: Problem, plans: list[Plan], *, many: bool) -> tuple[Problem, Parts]:
    """Return the sets to compare on, and their folds: one where sets are many."""
    seed = plans[0].seed
    if many:
        if len(problem.train) > SOME_SETS:
            _, kept = problem.hold_out(SOME_SETS / len(problem.train), seed=seed)
            problem = problem.subset(kept)
        _, test = problem.hold_out(HELD_OUT, seed=seed)
        rest = np.setdiff1d(np.arange(len(problem.train)), test)
        return problem, [(rest, test)]
    # Each of C candidates is trained on K - 1 parts of K, K times: C (K - 1) trainings.
    affordable = 1 + BUDGET * plans[0].model.members // len(plans)
    return problem, make_folds(problem, seed=seed, count=max(2, min(FOLDS, affordable)))


def _temperature(problem: Problem, raw: Array, parts: Parts) -> float:
    tested = np.concatenate([test for _, test in parts])
    return temperature(problem.target, np.asarray(problem.train.y)[tested], raw[tested])


def _loss(problem: Problem, raw: Array, parts: Parts) -> float:
    y, target = np.asarray(problem.train.y), problem.target
    losses = [target.loss_of(target.measure(y[test], raw[test])) for _, test in parts]
    loss = float(np.mean(losses))
    return loss if np.isfinite(loss) else np.inf


def _record(plans: list[Plan], losses: list[float], parts: Parts) -> dict[str, Any]:
    compared = [
        {
            "model": plan.model.name,
            "aggregation": plan.model.aggregation,
            "baseline": plan.model.baseline,
            "loss": float(f"{loss:.6g}") if np.isfinite(loss) else None,
        }
        for plan, loss in zip(plans, losses, strict=True)
    ]
    how = f"lowest loss on {len(parts)} inner folds" if len(parts) > 1 else "lowest held-out loss"
    return {"reason": how, "compared": compared}


def temperature(target: Target, y: Array, raw: Array) -> float:
    """Return the temperature, at least 1, that minimizes the log loss of held-out logits."""
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        return target.log_loss(y, raw / np.exp(log_t))

    if not np.isfinite(raw).all():
        return 1.0
    found = minimize_scalar(loss, bounds=(0.0, np.log(HOTTEST)), method="bounded")
    return float(f"{np.exp(found.x):.4g}") if found.fun < loss(0.0) else 1.0
