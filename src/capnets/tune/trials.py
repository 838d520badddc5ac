"""Run trials in one or several processes; each is cross-validated like the final run."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.learn import Options, Problem, make_plan
from capnets.learn.folds import Parts, cross_validate
from capnets.progress import Progress
from capnets.sets import Sets
from capnets.tune.space import Space
from capnets.tune.study import About, complete, open_study, watching_storage

if TYPE_CHECKING:
    import optuna

__all__ = ["Job", "Shared", "do_trials"]

#: Number of failed trials in a row that end a search.
FAILURES = 5
#: Seconds between two looks at the progress of other processes.
LOOK = 1.0


@dataclass(frozen=True)
class Shared:
    """A problem whose sets are on disk, so that every process maps them into its memory."""

    folder: Path
    others: dict[str, Any]

    @classmethod
    def write(cls, problem: Problem, folder: Path) -> Shared:
        """Write the training sets to a folder that outlives the processes."""
        problem.train.save(folder)
        names = [field.name for field in fields(problem)]
        return cls(folder, {n: getattr(problem, n) for n in names if n not in ("train", "tests")})

    def problem(self) -> Problem:
        """Return the problem, with its sets mapped into memory."""
        return Problem(Sets.load(self.folder), **self.others)


@dataclass(frozen=True)
class Job:
    """Everything that a process needs to run trials.

    Parameters
    ----------
    url, name, about
        The study; see `open_study`.
    data
        The problem.
    options
        Settings that are not searched for.
    parts
        The folds.
    space
        The search space.
    trials
        Number of complete trials to reach.
    """

    url: str
    name: str
    about: About
    data: Shared
    options: Options
    parts: Parts
    space: Space
    trials: int

    def loss(self, problem: Problem, settings: dict[str, Any]) -> float:
        """Cross-validate the settings of a trial.

        One network is trained where the final run averages several, to save time.
        """
        plan = make_plan(problem, replace(self.options, **settings, members=1))
        raw = cross_validate(problem, plan, self.parts)
        y, target = np.asarray(problem.train.y), problem.target
        return float(
            np.mean([target.loss_of(target.measure(y[test], raw[test])) for _, test in self.parts])
        )


def do_trials(job: Job, *, workers: int, progress: Progress) -> None:
    """Run trials until there are enough of them."""
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
                    "a worker process was killed, perhaps for lack of memory; the same command "
                    "continues the search (fewer --workers need less memory)"
                ) from error


def _work(job: Job, progress: Progress | None = None) -> None:
    import torch

    torch.set_num_threads(1)
    study, problem = open_study(job.url, job.name, job.about), job.data.problem()
    failures: list[str] = []

    def objective(trial: optuna.Trial) -> float:
        settings = job.space.settings(job.space.suggest(trial))
        try:
            loss = job.loss(problem, settings)
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
            study.sampler = _sampler(job.options.seed, len(study.get_trials(deepcopy=False)))
            study.optimize(objective, n_trials=1, catch=(InputError,))
            if len(failures) >= FAILURES:
                raise _hopeless(failures, done, job.trials)
    if progress is not None:
        progress(done, job.trials)


def _sampler(seed: int, trial: int) -> optuna.samplers.BaseSampler:
    """Return a sampler for one trial, so that a resumed search draws what it would have drawn."""
    import optuna

    state = np.random.SeedSequence([seed, trial]).generate_state(1)
    return optuna.samplers.TPESampler(seed=int(state[0]))


def _hopeless(failures: list[str], done: int, trials: int) -> InputError:
    reasons = "; ".join(
        f"{reason} ({count} times)" if count > 1 else reason
        for reason, count in Counter(failures).most_common()
    )
    advice = f" --trials {done} trains the best of the complete ones." if done else ""
    return InputError(
        f"{len(failures)} trials in a row failed, {done} of {trials} are complete: {reasons}. "
        f"Check the data, or try other networks.{advice}"
    )
