"""Choose networks by inner cross-validation, and calibrate their probabilities.

No single form of a capacity network is best on every data set: a rating behaves like a mean, a
count like a sum. If no network is named, a short list of networks with exact added values is
compared on inner folds; each candidate is trained once per fold, without averaging. The comparison
costs at most four times the final training, so that choosing and training cost at most five times
one network.

The final network averages as many members as any other of its preset. Members may be different
networks. They are added greedily: each is the candidate that lowers the held-out loss of the
average most (Caruana et al., ICML 2004). A mean of additive networks is additive.

With few sets, networks are overconfident, some far more than others. The logits of each member, and
then those of the average, are divided by the temperature that minimizes the log loss of held-out
predictions. Otherwise one overconfident member would dominate the average. Added values are divided
by the same temperature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.learn.folds import FOLDS, Parts, cross_validate, make_folds
from capnets.learn.options import Options
from capnets.learn.plan import Plan, make_plan
from capnets.learn.problem import Problem
from capnets.learn.target import Target
from capnets.models import ModelSpec
from capnets.progress import TitledProgress
from capnets.sets import Array
from capnets.training.presets import SOME_SETS
from capnets.training.priors import Consistent

__all__ = ["CANDIDATES", "choose", "temperature"]

#: Cost of the comparison, in trainings of the final network.
BUDGET = 4
#: Number of outputs up to which boosted trees are compared.
MOST_TREES = 4
#: Share of the sets that candidates are tested on where sets are many.
HELD_OUT = 0.2
#: Highest temperature; beyond it, predictions are the shares of the classes.
HOTTEST = 20.0


@dataclass(frozen=True)
class Candidate:
    """A network to compare: its name, aggregation and baseline.

    `cost` is the time of a training relative to a C-GRU; `ordered` as in `SetModel`.
    """

    model: str
    aggregation: str = "sum"
    baseline: str = "learned"
    cost: float = 1.0
    ordered: bool = True

    @property
    def title(self) -> str:
        """Short name, as in `ModelSpec.mixed`."""
        return f"{self.model}:{self.aggregation}:{self.baseline}"

    def plan(self, problem: Problem, options: Options) -> Plan:
        """Return the plan that trains this network."""
        asked = replace(
            options, model=self.model, aggregation=self.aggregation, baseline=self.baseline
        )
        return make_plan(problem, asked)


#: Compared networks; the first ones if the budget does not allow all.
CANDIDATES = (
    Candidate("c-gru", "mean+sum"),
    Candidate("c-gru", "last"),
    Candidate("c-deepset", "mean"),
    Candidate("c-pool", cost=0.25, ordered=False),
    Candidate("c-trees", cost=0.25, ordered=False),
    Candidate("c-deepset", "sum", "none"),
    Candidate("c-pairs", cost=0.25, ordered=False),
)
#: Compared networks if all sets have one size. Labels then determine neither a baseline nor values
#: that depend on the position of an instance.
ONE_SIZE = (Candidate("c-deepset", "sum", "none"), Candidate("c-pairs", "sum", "none", 0.25, False))
#: Compared networks if added values must not be negative.
MONOTONE = (Candidate("c-deepset", "sum", "none"), Candidate("c-gru", "sum", "none"))


def choose(
    problem: Problem,
    options: Options | None = None,
    *,
    recorded: Plan | None = None,
    progress: TitledProgress | None = None,
) -> Plan:
    """Return a plan; compare networks if none is named, and calibrate classes where sets are few.

    Parameters
    ----------
    problem
        What is to be learned.
    options
        Settings that are not to be chosen.
    recorded
        Plan of an interrupted run. Its choice is reused; nothing is compared again.
    progress
        Called with a title, the number of finished trainings and their total.
    """
    options = options or Options()
    if recorded is not None:
        plan = _named(recorded.model).plan(problem, options)
        model = replace(plan.model, mixed=recorded.model.mixed, members=recorded.model.members)
        plan = replace(plan, temperatures=recorded.temperatures, choice=recorded.choice)
        return replace(plan, model=model)
    many = len(problem.train) >= SOME_SETS
    candidates = _candidates(problem, options)
    compares = bool(candidates) and options.model is None and not problem.exact
    calibrates = problem.target.classifies and options.calibrate and not many
    if not compares and not calibrates:
        return make_plan(problem, options)
    named = make_plan(problem, options)
    if compares and named.loss != problem.target.loss:
        raise InputError(
            f"loss {named.loss!r}: name a network, such as c-gru (-m c-gru), because networks are "
            "compared by their squared error"
        )
    budget = BUDGET * named.model.members
    candidates = _affordable(candidates, budget) if compares else [_named(named.model)]
    plans = [candidate.plan(problem, options) for candidate in candidates]
    try:
        # Each candidate is trained on K - 1 parts of K, K times: K - 1 trainings.
        folds = 1 + int(budget / sum(c.cost for c in candidates))
        problem, parts = _parts(problem, plans[0].seed, many=many, folds=min(FOLDS, folds))
    except InputError as error:  # too few sets: a stated default
        return replace(plans[0], choice={"reason": f"not compared: {error}"})
    raws = _held_out(problem, plans, parts, progress)
    judge = _Judge(problem, parts, calibrates=calibrates)
    if not compares:
        # Averaging already makes members less confident than a single network.
        heat = judge.temperature(raws[0])
        heat = heat if named.model.members == 1 else heat**0.5
        return replace(named, temperatures=_rounded([heat] * named.model.members))
    heats = [judge.temperature(raw) for raw in raws]
    raws = [raw / heat for raw, heat in zip(raws, heats, strict=True)]
    chosen = _select(raws, judge, members=named.model.members)
    heat = judge.temperature(np.mean([raws[k] for k in chosen], axis=0))
    return replace(
        _mixture(candidates, plans, chosen),
        temperatures=_rounded([heat * heats[k] for k in chosen]),
        choice=_record(candidates, raws, chosen, judge),
    )


def _rounded(temperatures: list[float]) -> tuple[float, ...]:
    """Return temperatures as they are recorded; none if all are 1."""
    found = tuple(float(f"{t:.4g}") for t in temperatures)
    return found if any(t != 1 for t in found) else ()


def _named(spec: ModelSpec) -> Candidate:
    return Candidate(spec.name, spec.aggregation, spec.baseline)


def _candidates(problem: Problem, options: Options) -> list[Candidate]:
    """Return the candidates that suit the problem and allow the requested settings."""
    found = CANDIDATES if options.activation in (None, "identity") else MONOTONE
    if found is CANDIDATES and _one_size(problem) and options.baseline != "learned":
        found = ONE_SIZE
    ordered = options.sort is not None or any(isinstance(p, Consistent) for p in options.priors)
    # Alone in a leaf, a set of little weight would move the logit as far as a heavy one.
    alike = problem.train.weights is None
    boosts = problem.target.kind != "survival" and options.teacher is None and alike
    # Every output has its own trees: with 13, they take four times as long as a C-GRU.
    boosts = boosts and problem.target.outputs <= MOST_TREES
    covariates = problem.train.covariates is not None
    boosts = boosts and not covariates  # see ModelSpec
    learned = covariates and found is CANDIDATES  # the baseline holds the level of the labels
    return [
        c
        for c in found
        if (c.ordered or not ordered)
        and (boosts or c.model != "c-trees")
        and options.aggregation in (None, c.aggregation)
        and options.baseline in (None, c.baseline)
        and (c.baseline == "learned" or not learned or options.baseline == "none")
    ]


def _one_size(problem: Problem) -> bool:
    sizes, covariates = problem.train.sizes, problem.train.covariates
    return covariates is None and int(sizes.min()) == int(sizes.max()) > 1


def _held_out(
    problem: Problem, plans: list[Plan], parts: Parts, progress: TitledProgress | None
) -> list[Array]:
    """Return the outputs of every candidate, as a single network, for sets it did not train on."""
    raws = []
    for number, plan in enumerate(plans):

        def done(folds: int, number: int = number) -> None:
            if progress is not None:
                progress("comparing networks", number * len(parts) + folds, len(plans) * len(parts))

        done(0)
        one = replace(plan, model=replace(plan.model, members=1), teacher=None)
        raws.append(cross_validate(problem, one, parts, progress=done))
    return raws


@dataclass(frozen=True)
class _Judge:
    """Measure held-out outputs after calibration, so that overconfidence does not count."""

    problem: Problem
    parts: Parts
    calibrates: bool

    def temperature(self, raw: Array) -> float:
        """Return the temperature of these outputs."""
        if not self.calibrates:
            return 1.0
        tested = np.concatenate([test for _, test in self.parts])
        y = np.asarray(self.problem.train.y)[tested]
        return temperature(self.problem.target, y, raw[tested])

    def loss(self, raw: Array) -> float:
        """Return the mean loss of the folds, calibrated."""
        y, target = np.asarray(self.problem.train.y), self.problem.target
        raw = raw / self.temperature(raw)
        losses = [target.loss_of(target.measure(y[test], raw[test])) for _, test in self.parts]
        loss = float(np.mean(losses))
        return loss if np.isfinite(loss) else np.inf


def _select(raws: list[Array], judge: _Judge, *, members: int) -> list[int]:
    """Return the candidate of every member, added greedily; the most frequent one first."""
    chosen: list[int] = []
    for _ in range(members):
        averages = [np.mean([raws[c] for c in [*chosen, k]], axis=0) for k in range(len(raws))]
        chosen.append(int(np.argmin([judge.loss(average) for average in averages])))
    return sorted(chosen, key=lambda k: (-chosen.count(k), chosen.index(k)))


def _mixture(candidates: list[Candidate], plans: list[Plan], chosen: list[int]) -> Plan:
    """Return the plan for an average of candidates."""
    first, titles = plans[chosen[0]], tuple(candidates[k].title for k in chosen)
    mixed = titles if len(set(titles)) > 1 else ()
    return replace(first, model=replace(first.model, mixed=mixed))


def _affordable(candidates: list[Candidate], budget: float) -> list[Candidate]:
    """Return the first candidates, as many as can be trained once."""
    costs = np.cumsum([c.cost for c in candidates])
    return candidates[: max(1, int(np.searchsorted(costs, budget, side="right")))]


def _parts(problem: Problem, seed: int, *, many: bool, folds: int) -> tuple[Problem, Parts]:
    """Return the sets to compare on, and their folds: one where sets are many."""
    if not many:
        return problem, make_folds(problem, seed=seed, count=max(2, folds))
    if len(problem.train) > SOME_SETS:
        _, kept = problem.hold_out(SOME_SETS / len(problem.train), seed=seed)
        problem = problem.subset(kept)
    _, test = problem.hold_out(HELD_OUT, seed=seed)
    rest = np.setdiff1d(np.arange(len(problem.train)), test)
    return problem, [(rest, test)]


def _record(
    candidates: list[Candidate], raws: list[Array], chosen: list[int], judge: _Judge
) -> dict[str, Any]:
    losses = [judge.loss(raw) for raw in raws]
    compared = [
        {
            "model": candidate.model,
            "aggregation": candidate.aggregation,
            "baseline": candidate.baseline,
            "loss": float(f"{loss:.6g}") if np.isfinite(loss) else None,
            "members": chosen.count(number),
        }
        for number, (candidate, loss) in enumerate(zip(candidates, losses, strict=True))
    ]
    folds = len(judge.parts)
    how = f"lowest loss on {folds} inner folds" if folds > 1 else "lowest held-out loss"
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
