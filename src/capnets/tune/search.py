"""The search: a study about the data, and the best of its trials as a finished run."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.inputs import Given
from capnets.estimators.runs import held_out, train_run
from capnets.files import write_json
from capnets.runs import Run
from capnets.tune.folds import Parts, make_folds
from capnets.tune.page import write_page
from capnets.tune.space import Space
from capnets.tune.study import About, check_same, digest, open_study, watching_storage
from capnets.tune.trials import Job, Progress, Shared, do_trials

if TYPE_CHECKING:
    import optuna

__all__ = ["tune"]

#: What a search decides, or what is told about it in another way.
_NOT_SETTINGS = (
    "model", "hidden", "layers", "dropout", "recipe", "epochs",
    "columns", "random_state", "verbose",
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
    """Search, then train the best settings into `folder/run`; `folder/trials.html` shows all.

    Called again with the same folder (or storage) it goes on until there are `trials` in all. If
    more trials than before find something better, its run takes the place of the one that is there,
    once it is finished. A search about other data, labels or choices is refused.

    Parameters
    ----------
    folder
        Where everything goes.
    X
        A table with its targets, .npz, or `Sets` with labels.
    estimator
        Says what kind of labels there are, the columns, the seed; settings that are searched for
        are replaced.
    trials
        How many complete trials there shall be.
    space
        What is tried.
    storage
        An Optuna storage URL that many machines can reach; SQLite in the folder by default.
    study
        The name of the study in the storage. By default it is made from what the search is about:
        machines that search the same join, others do not meet.
    workers
        Processes that work at the same time.
    progress
        Called with the trials done and wanted.
    """
    if trials < 1 or workers < 1:
        raise InputError(f"at least 1 trial and 1 worker are needed, not {trials} and {workers}")
    folder, space = Path(folder), space or Space()
    with tempfile.TemporaryDirectory() as scratch:
        # The instances of a file are mapped, not held: it may be larger than memory.
        kept = Path(scratch) / "given" if isinstance(X, str | Path) else None
        train, parts, about = _plan(estimator, estimator._given(X, None, folder=kept), space)
        name = study or f"capnets-{digest(about)}"
        _check_folder(folder, name, about)
        url = storage or _beside(folder)
        # Made once before anybody works on it: two makers at once can fail.
        opened = open_study(url, name, about)
        write_json(folder / "study.json", {"study": name, "about": about})
        shared = Shared.write(train, Path(scratch) / "train")
        job = Job(url, name, about, shared, estimator, parts, space, trials)
        do_trials(job, workers=workers, progress=progress or (lambda done, wanted: None))
    with watching_storage(url):
        write_page(opened, folder)
        best = opened.best_trial
    return _best_run(folder, X, estimator, best)


def _plan(estimator: SetEstimator, given: Given, space: Space) -> tuple[Given, Parts, About]:
    """The sets to train on, their folds, and what the search is about."""
    sets = estimator._plan(given, None)
    data = estimator.fingerprint_
    estimator.set_params(random_state=estimator.seed_)  # the same test sets for search and run
    train, _ = held_out(estimator, given, sets)
    labelled = estimator._plan(train, None)
    parts = make_folds(estimator, labelled, groups=train.groups, seed=estimator.seed_)
    about = {
        **_question(estimator, given),
        **space.to_dict(),
        "data": data,
        "folds": digest([test.tolist() for _, test in parts]),
    }
    return train, parts, about


def _question(estimator: SetEstimator, given: Given) -> About:
    """What is to be predicted, and all that is set and not searched for."""
    columns = None if given.schema is None else given.schema.columns
    settings = estimator.get_params(deep=False).items()
    plain = (str, int, float, bool, type(None))
    return {
        "estimator": type(estimator).__name__,
        "loss": estimator.loss_,
        "target": None if columns is None else list(columns.target),
        "labels": json.loads(json.dumps(estimator._labels())),
        "order column": given.order,
        "missing": None if columns is None else columns.missing,
        "seed": estimator.seed_,
        **{
            name: value if isinstance(value, plain) else repr(value)
            for name, value in settings
            if name not in _NOT_SETTINGS
        },
    }


def _check_folder(folder: Path, name: str, about: About) -> None:
    """Refuse a folder of another search, or with a run that no search made."""
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


def _best_run(folder: Path, X: Any, estimator: SetEstimator, best: optuna.trial.FrozenTrial) -> Run:
    """The finished run of the best trial; the one that is there, if it is of the same settings."""
    run, before = folder / "run", folder / ".before"
    if before.exists() and not run.exists():  # killed between the two steps of a replacement
        before.rename(run)
    if _tried(run) == best.params:
        return Run(run)
    source = str(X) if isinstance(X, str | Path) else type(X).__name__
    # Named by what is trained into it, so that only the same training is taken up again.
    new = folder / f".run-{digest([best.params, source])}"
    train_run(new, X, estimator.set_params(**Space.settings(best.params)), resume=True)
    write_json(new / "trial.json", {"trial": best.number, "loss": best.value, **best.params})
    shutil.rmtree(before, ignore_errors=True)
    if run.exists():
        run.rename(before)
    new.rename(run)
    for useless in (before, *folder.glob(".run-*")):
        shutil.rmtree(useless, ignore_errors=True)
    return Run(run)


def _tried(run: Path) -> dict[str, Any] | None:
    """What the trial tried that a finished run was trained from."""
    try:
        record = json.loads((run / "trial.json").read_text())
    except (OSError, ValueError):
        return None
    return {name: value for name, value in record.items() if name not in ("trial", "loss")}
