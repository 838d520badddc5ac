"""Search for good settings, and train the best trial into a run."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.files import write_json
from capnets.files.folders import recover_folder, remove_folder, replace_folder
from capnets.files.locks import lock_folder
from capnets.learn import Options, Problem, choose, train
from capnets.learn.folds import make_folds
from capnets.learn.problem import TEST_SHARE
from capnets.progress import Progress
from capnets.runs import Run
from capnets.sets.fingerprint import fingerprint
from capnets.tune.page import write_page
from capnets.tune.space import Space
from capnets.tune.study import About, check_same, digest, open_study, watching_storage
from capnets.tune.trials import Job, Shared, do_trials

if TYPE_CHECKING:
    import optuna

__all__ = ["tune"]

#: Parameters that a search decides, or that are recorded under another name.
_NOT_SETTINGS = (
    "model", "hidden", "layers", "dropout", "recipe", "epochs",
    "columns", "loss", "random_state", "verbose",
)  # fmt: skip


def tune(
    folder: str | Path,
    X: Any,
    estimator: SetEstimator,
    *,
    trials: int = 30,
    space: Space | None = None,
    storage: str | None = None,
    study: str | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Search, then train the best settings into `folder/run`; `folder/trials.html` lists all.

    Called again with the same folder (or storage), the search continues until there are `trials`
    trials in all. If a new trial is better, its run replaces the existing one once it is finished.
    A search about other data, labels or settings is refused.

    Parameters
    ----------
    folder
        Output folder.
    X
        A table with its targets, .npz, or `Sets` with labels.
    estimator
        Gives the kind of labels, the columns and the seed; settings in the search space are
        replaced.
    trials
        Number of complete trials to reach.
    space
        The search space.
    storage
        An Optuna storage URL that many machines can reach; SQLite in the folder by default.
    study
        Name of the study in the storage. By default it is derived from the question, so machines
        that search the same thing share a study.
    workers
        Number of parallel processes.
    progress
        Called with the number of trials done and wanted.
    """
    if trials < 1 or workers < 1:
        raise InputError(f"at least 1 trial and 1 worker are needed, not {trials} and {workers}")
    folder, space = Path(folder), space or Space()
    with tempfile.TemporaryDirectory() as scratch:
        # The instances of a file are mapped, not held: it may be larger than memory.
        kept = Path(scratch) / "given" if isinstance(X, str | Path) else None
        whole, options = estimator.problem(X, folder=kept), estimator.options()
        problem = whole.with_test(TEST_SHARE, seed=options.seed)
        parts = make_folds(problem, seed=options.seed)
        about = {
            **_question(estimator, whole, options),
            **space.to_dict(),
            "data": fingerprint(whole.train),
            "folds": digest([test.tolist() for _, test in parts]),
        }
        name = study or f"capnets-{digest(about)}"
        _check_folder(folder, name, about)
        url = storage or _beside(folder)
        # Created before any worker starts: two processes that create it at once can fail.
        opened = open_study(url, name, about)
        write_json(folder / "study.json", {"study": name, "about": about})
        shared = Shared.write(problem, Path(scratch) / "train")
        job = Job(url, name, about, shared, options, parts, space, trials)
        do_trials(job, workers=workers, progress=progress or (lambda done, wanted: None))
        with watching_storage(url):
            write_page(opened, folder)
            best = opened.best_trial
        return _best_run(folder, problem, options, best)


def _question(estimator: SetEstimator, problem: Problem, options: Options) -> About:
    """Return what is to be predicted, and all settings that are not searched for."""
    columns = None if problem.schema is None else problem.schema.columns
    settings = estimator.get_params(deep=False).items()
    plain = (str, int, float, bool, type(None))
    return {
        "estimator": type(estimator).__name__,
        "loss": options.loss or problem.target.loss,
        "target": None if columns is None else list(columns.target),
        "labels": json.loads(json.dumps(problem.target.to_data()["labels"])),
        "order column": problem.order,
        "missing": None if columns is None else columns.missing,
        "seed": options.seed,
        **{
            name: value if isinstance(value, plain) else repr(value)
            for name, value in settings
            if name not in _NOT_SETTINGS
        },
    }


def _check_folder(folder: Path, name: str, about: About) -> None:
    """Refuse the folder of another search, or one with a run that no search made."""
    path = folder / "study.json"
    if not path.exists():
        if (folder / "run").exists():
            raise InputError(f"{folder / 'run'} is not of this search; choose another folder")
        return
    try:
        record = json.loads(path.read_text())
        before, recorded = record["study"], dict(record["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); choose another folder") from error
    check_same(recorded, about, str(folder), "choose another folder")
    if before != name:
        raise InputError(
            f"{folder} is of the study {before!r}, not {name!r}; choose another folder"
        )


def _beside(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder / 'study.db'}"


def _best_run(
    folder: Path, problem: Problem, options: Options, best: optuna.trial.FrozenTrial
) -> Run:
    """Return the finished run of the best trial: the existing one, if it has the same settings."""
    run = folder / "run"
    recover_folder(run)
    if _tried(run) != best.params:
        # Named after its content, so that only the same training is resumed.
        new = folder / f".run-{digest([best.params, problem.origin['source']])}"
        plan = choose(problem, replace(options, **Space.settings(best.params)))
        train(problem, plan, new, resume=True)
        write_json(new / "trial.json", {"trial": best.number, "loss": best.value, **best.params})
        with lock_folder(run, busy=f"another process is training into {run}"):
            replace_folder(new, run)
    for useless in folder.glob(".run-*"):
        remove_folder(useless)
    return Run(run)


def _tried(run: Path) -> dict[str, Any] | None:
    """Return the trial settings that a finished run was trained from."""
    try:
        record = json.loads((run / "trial.json").read_text())
    except (OSError, ValueError):
        return None
    return {name: value for name, value in record.items() if name not in ("trial", "loss")}
