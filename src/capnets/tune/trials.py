"""Trials: trained and judged on folds the way the final run is, by one process or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.inputs import Given
from capnets.estimators.scoring import quality
from capnets.sets import Sets
from capnets.training.presets import SOME_SETS
from capnets.tune.folds import Parts
from capnets.tune.space import Space
from capnets.tune.study import About, complete, open_study, watching_storage

if TYPE_CHECKING:
    import optuna

__all__ = ["Job", "Shared", "cross_validate", "do_trials"]

#: So many failed trials, one after another, end a search: there is little hope for the next.
FAILURES = 5
#: How often it is looked how far several processes are, in seconds.
LOOK = 1.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Shared:
    """The sets to train on as several processes have them: on disk, mapped into memory by each."""

    folder: Path
    others: dict[str, Any]

    @classmethod
    def write(cls, given: Given, folder: Path) -> Shared:
        """Write the sets to a folder that is there as long as the processes."""
        given.sets.save(folder)
        names = [field.name for field in fields(given)]
        return cls(folder, {n: getattr(given, n) for n in names if n != "sets"})

    def given(self) -> Given:
        """What was written."""
        return Given(Sets.load(self.folder), **self.others)


@dataclass(frozen=True)
class Job:
    """All that a process needs to do trials.

    Parameters
    ----------
    url, name, about
        The study; see `open_study`.
    data
        The sets to train on.
    estimator
        Says everything that is not searched for.
    parts
        The folds.
    space
        What is tried.
    trials
        How many complete trials there shall be.
    """

    url: str
    name: str
    about: About
    data: Shared
    estimator: SetEstimator
    parts: Parts
    space: Space
    trials: int


def do_trials(job: Job, *, workers: int, progress: Progress) -> None:
    """Do trials until there are enough of them."""
    if workers == 1:
        _work(job, progress)
        return
    study = open_study(job.url, job.name, job.about)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        pending = {pool.submit(_work, job) for _ in range(workers)}
        while pending:
            ended, pending = wait(pending, timeout=LOOK)
            with watching_storage(job.url):
                progress(complete(study), job.trials)
            try:
                for future in ended:
                    future.result()
            except BrokenProcessPool as error:
                raise InputError(
                    "a process that did trials was killed, perhaps for want of memory; the same "
                    "command goes on (with fewer --workers it needs less)"
                ) from error


def _work(job: Job, progress: Progress | None = None) -> None:
    import torch

    torch.set_num_threads(1)
    study, given = open_study(job.url, job.name, job.about), job.data.given()
    failures: list[str] = []

    def objective(trial: optuna.Trial) -> float:
        settings = job.space.settings(job.space.suggest(trial))
        try:
            loss = cross_validate(job.estimator, given, settings, job.parts)
            if not np.isfinite(loss):
                raise InputError(f"the loss is {loss}")
        except InputError as error:
            failures.append(str(error))
            raise
        failures.clear()
        return loss

    with watching_storage(job.url):
        while (done := complete(study)) < job.trials:
            if progress is not None:
                progress(done, job.trials)
            study.optimize(objective, n_trials=1, catch=(InputError,))
            if len(failures) >= FAILURES:
                raise _hopeless(failures, done, job.trials)
    if progress is not None:
        progress(done, job.trials)


def _hopeless(failures: list[str], done: int, trials: int) -> InputError:
    reasons = "; ".join(
        f"{reason} ({count} times)" if count > 1 else reason
        for reason, count in Counter(failures).most_common()
    )
    advice = f" --trials {done} trains the best of those that are." if done else ""
    return InputError(
        f"{len(failures)} trials after another failed, {done} of {trials} are complete: {reasons}. "
        f"See whether the data are what they should be, or try other networks.{advice}"
    )


def cross_validate(
    estimator: SetEstimator, given: Given, settings: dict[str, Any], parts: Parts
) -> float:
    """The mean loss over folds: log loss of classes, squared error of amounts, wrong labels.

    Everything is planned for all sets, as for the final run, so a fold whose training sets lack a
    label still knows it. One network is trained where the final run averages several, for speed.
    """
    fitted = clone(estimator).set_params(
        **settings, members=1, early_stopping=_stops_early(estimator, given)
    )
    sets = fitted._plan(given, None)
    losses = []
    for train, test in parts:
        groups = None if given.groups is None else given.groups[train]
        part = replace(given, sets=given.sets.subset(train), groups=groups)
        fitted._learn(sets.subset(train), part)
        measured = quality(fitted, replace(sets.subset(test), weights=None))
        losses.append(_loss(measured))
    return float(np.mean(losses))


def _stops_early(estimator: SetEstimator, given: Given) -> bool | str:
    """As the final run does; a fold is smaller and might decide otherwise."""
    wanted = estimator.early_stopping
    return len(given.sets) >= SOME_SETS if wanted == "auto" else wanted


def _loss(measured: dict[str, float]) -> float:
    for name in ("log_loss", "mse"):
        if name in measured:
            return measured[name]
    return 1 - measured["accuracy"]
