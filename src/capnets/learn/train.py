"""Train a plan on a problem, in memory or into a run folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from capnets.learn.measure import measure_problem
from capnets.learn.plan import Plan
from capnets.learn.problem import Problem
from capnets.learn.seen import set_keys, write_keys
from capnets.learn.teacher import distill, pooled_teacher
from capnets.models import Ensemble, SetModel, parameters
from capnets.runs import Run
from capnets.training.callbacks import Callback
from capnets.training.device import make_fabric
from capnets.training.fit import History, fit

if TYPE_CHECKING:
    from capnets.training.device import Devices

__all__ = ["Learned", "learn", "train"]

#: Epochs and batches of networks that learn from a teacher, who gives them twenty times the sets.
TAUGHT_EPOCHS, TAUGHT_BATCH = 20, 64


class Learned(NamedTuple):
    """A trained network and one record per epoch."""

    model: SetModel
    history: History


def learn(
    problem: Problem,
    plan: Plan,
    *,
    checkpoint: Path | None = None,
    callbacks: Sequence[Callback] = (),
    fabric: Devices | None = None,
) -> Learned:
    """Train the network of a plan in memory.

    Parameters
    ----------
    problem
        What is to be learned.
    plan
        How.
    checkpoint
        File to write after every epoch and, if it exists, to resume from.
    callbacks
        Hooks for progress bars and loggers (see `capnets.training.callbacks`).
    fabric
        Devices; by default one of the best kind available.
    """
    train, valid = problem.train, problem.valid
    if plan.valid_share:
        rest, held = problem.hold_out(plan.valid_share, seed=plan.seed)
        train, valid = rest.train, problem.train.subset(held)
    recipe = plan.recipe
    if plan.teacher is not None:
        own = replace(problem, train=train)
        train = distill(own, pooled_teacher(own, seed=plan.seed), seed=plan.seed).train
        recipe = replace(recipe, epochs=min(recipe.epochs, TAUGHT_EPOCHS), batch_size=TAUGHT_BATCH)
    model = plan.model.build(plan.seed)
    history = fit(
        model, train, valid, recipe=recipe, seed=plan.seed, loss=plan.loss,
        priors=plan.priors, checkpoint=checkpoint, callbacks=callbacks, fabric=fabric,
    )  # fmt: skip
    if plan.temperatures:
        divide_outputs(model, plan.temperatures)
    return Learned(model, history)


def divide_outputs(model: SetModel, divisors: Sequence[float]) -> None:
    """Divide the predictions and added values of every member by its number."""
    members = model.each if isinstance(model, Ensemble) else [model]
    with torch.no_grad():
        for network, divisor in zip(members, divisors, strict=True):
            network.unit.div_(divisor)


def train(
    problem: Problem,
    plan: Plan,
    folder: str | Path,
    *,
    resume: bool = False,
    force: bool = False,
    callbacks: Sequence[Callback] = (),
    fabric: Devices | None = None,
) -> Run:
    """Train a plan into a run folder and measure the result.

    With `resume`, a finished run is returned unchanged, and an interrupted one continues with the
    same bits as if it had never stopped. With a `fabric` of several processes (see `make_fabric`)
    the first process starts the others and writes the run; in the others the returned run is not
    finished.

    Parameters
    ----------
    problem
        What is to be learned.
    plan
        How.
    folder
        The run folder.
    resume, force
        Continue an interrupted run; replace an existing one.
    callbacks
        Hooks for progress bars and loggers (see `capnets.training.callbacks`).
    fabric
        Devices; by default one of the best kind available.
    """
    config = plan.config(problem)
    fabric = fabric or make_fabric()
    if not fabric.is_global_zero:  # the first process has made the run and holds its lock
        fabric.launch()
        run = Run.in_training(folder)
        learn(problem, plan, checkpoint=run.checkpoint, fabric=fabric)
        return run
    plan.model.build(plan.seed)  # raise before a folder exists if the network cannot be built
    run = Run.create(folder, config, resume=resume, force=force)
    with run.lock():
        if run.finished:
            return run
        began = time.perf_counter()
        fabric.launch()
        found = learn(problem, plan, checkpoint=run.checkpoint, callbacks=callbacks, fabric=fabric)
        run.write_history(found.history)
        run.write_weights(found.model)
        if "task" not in problem.origin:  # a task draws new test sets
            write_keys(run.folder, set_keys(problem.train))
        seconds = sum(line["seconds"] for line in found.history)
        sizes = {"train": len(problem.train)} | {k: len(v) for k, v in problem.tests.items()}
        run.finish(
            {
                **measure_problem(found.model, problem, orders=plan.orders, seed=plan.seed),
                **{f"{name}_sets": count for name, count in sizes.items()},
                "parameters": parameters(found.model),
                "epochs": len(found.history),
                "train_seconds": round(seconds, 1),
                "total_seconds": round(max(seconds, time.perf_counter() - began), 1),
            }
        )
    return run
