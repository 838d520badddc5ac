"""Looking for good settings with Optuna: network, sizes and recipe, by cross-validation.

A study lives in a database (SQLite beside the result unless told otherwise), so it can be stopped,
killed, taken up again, and worked on by many processes or machines at once. Every trial is
cross-validated on whole sets; the sets that the final run is measured on are never seen by any.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.atomic import write_text
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.base import SetEstimator
from capnets.estimators.quality import quality
from capnets.estimators.runs import held_out, train_run
from capnets.records import Record
from capnets.runs import Run
from capnets.sets import Array, Sets
from capnets.training.recipe import recipe as find_recipe

if TYPE_CHECKING:
    import optuna

__all__ = ["Space", "tune"]

STUDY = "capnets"
#: A trial whose process has been silent for so many seconds is given to another one.
HEARTBEAT = 30
FOLDS = 3

Parts = list[tuple[Array, Array]]


@dataclass(frozen=True)
class Space(Record):
    """What is tried.

    Parameters
    ----------
    models
        Names of the registry.
    hidden, layers, dropout, epochs
        Choices.
    learning_rate, weight_decay
        Lowest and highest, on a logarithmic scale.
    """

    models: tuple[str, ...] = ("c-gru", "c-lstm", "c-rnn", "deepset", "attention")
    hidden: tuple[int, ...] = (8, 16, 32, 64)
    layers: tuple[int, ...] = (1, 2, 3)
    dropout: tuple[float, ...] = (0.0, 0.2, 0.5)
    epochs: tuple[int, ...] = (30, 60, 120)
    learning_rate: tuple[float, float] = (1e-3, 2e-2)
    weight_decay: tuple[float, float] = (1e-4, 0.3)

    def settings(self, trial: optuna.Trial) -> dict[str, Any]:
        """The settings of an estimator for one trial; only one network, for speed."""
        rate = trial.suggest_float("learning_rate", *self.learning_rate, log=True)
        decay = trial.suggest_float("weight_decay", *self.weight_decay, log=True)
        epochs = trial.suggest_categorical("epochs", self.epochs)
        return {
            "model": trial.suggest_categorical("model", self.models),
            "hidden": trial.suggest_categorical("hidden", self.hidden),
            "layers": trial.suggest_categorical("layers", self.layers),
            "dropout": trial.suggest_categorical("dropout", self.dropout),
            "recipe": find_recipe("small", learning_rate=rate, weight_decay=decay, epochs=epochs),
        }


def tune(
    folder: str | Path,
    X: Any,
    estimator: SetEstimator,
    *,
    trials: int = 30,
    space: Space | None = None,
    storage: str | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Search, then train the best settings into `folder/run`; `folder/trials.html` shows all.

    Called again with the same folder (or storage) it goes on until there are `trials` in all.

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
    workers
        Processes that work at the same time.
    progress
        Called with the trials done and wanted.
    """
    if trials < 1 or workers < 1:
        raise InputError(f"at least 1 trial and 1 worker are needed, not {trials} and {workers}")
    folder, space = Path(folder), space or Space()
    if (folder / "run" / "metrics.json").exists():
        raise InputError(f"{folder / 'run'} holds a finished run; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    given = estimator._given(X, None)
    sets = estimator._plan(given, None)
    estimator.set_params(random_state=estimator.seed_)  # the same test sets for search and run
    train, _ = held_out(estimator, given, sets)
    _check_folds(train.sets, classes=isinstance(estimator, SetClassifier))
    # Workers map the training sets; labels are numbers from here on, weights of classes in them.
    labels = estimator._plan(train, None)
    kind = _kind(estimator)
    parts = make_folds(labels, kind, groups=train.groups, seed=estimator.seed_)
    labels.save(folder / "sets")
    url = storage or f"sqlite:///{folder / 'study.db'}"
    _study(url)  # made once before anybody works on it: two makers at once can fail
    job = (url, str(folder / "sets"), kind, space.to_dict(), trials, estimator.seed_, parts)
    if workers == 1:
        _work(*job, progress=progress)
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for future in [pool.submit(_work, *job) for _ in range(workers)]:
                future.result()
    study = _study(url)
    write_page(study, folder)
    best = {k: v for k, v in study.best_params.items() if k not in _RECIPE}
    rate = {k: study.best_params[k] for k in _RECIPE}
    estimator.set_params(**best, recipe=find_recipe("small", **rate))
    return train_run(folder / "run", X, estimator, resume=True)


_RECIPE = ("learning_rate", "weight_decay", "epochs")


def _kind(estimator: SetEstimator) -> dict[str, Any]:
    if isinstance(estimator, SetClassifier):
        return {"classes": len(estimator.classes_), "multilabel": estimator.multilabel_}
    return {"classes": 0, "multilabel": False}


def _work(
    url: str,
    folder: str,
    kind: dict[str, Any],
    space: dict[str, Any],
    trials: int,
    seed: int,
    parts: Parts,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Do trials until there are enough; in a process of its own."""
    import torch

    torch.set_num_threads(1)
    study, sets, choices = _study(url), Sets.load(folder), Space.from_dict(space)

    def objective(trial: optuna.Trial) -> float:
        return cross_validate(sets, kind, choices.settings(trial), seed=seed, parts=parts)

    while (done := _done(study)) < trials:
        if progress is not None:
            progress(done, trials)
        study.optimize(objective, n_trials=1)
    if progress is not None:
        progress(trials, trials)


def make_folds(sets: Sets, kind: dict[str, Any], *, groups: Array | None, seed: int) -> Parts:
    """Training and test sets of every fold: with shares of classes alike, and groups whole."""
    from sklearn import model_selection as ways

    y = np.asarray(sets.y)
    one_class_each = kind["classes"] and not kind["multilabel"]
    if groups is not None and (count := len(np.unique(groups))) < FOLDS:
        raise InputError(f"there are {count} groups to train on, fewer than the {FOLDS} folds")
    if groups is None:
        way = ways.StratifiedKFold if one_class_each else ways.KFold
    else:
        way = ways.StratifiedGroupKFold if one_class_each else ways.GroupKFold
    splitter = way(FOLDS, shuffle=True, random_state=seed)
    parts = list(splitter.split(np.arange(len(sets)), y if one_class_each else None, groups))
    for train, _ in parts:
        if one_class_each and len(np.unique(y[train])) < kind["classes"]:
            raise InputError(
                "a class is in so few groups that a fold has none of it to train on; "
                "tune without the group column, or give more groups"
            )
    return parts


def cross_validate(
    sets: Sets, kind: dict[str, Any], settings: dict[str, Any], *, seed: int, parts: Parts
) -> float:
    """The mean loss over folds of whole sets: log loss of classes, squared error of amounts."""
    y = np.asarray(sets.y)
    losses = []
    for train, test in parts:
        estimator: Any = (SetClassifier if kind["classes"] else SetRegressor)(
            members=1, orders=4, early_stopping=False, random_state=seed, **settings
        )
        labels = y[train].astype(int) if kind["classes"] else y[train]
        estimator.fit(sets.subset(train), labels)
        measured = quality(estimator, sets.subset(test))
        losses.append(measured.get("log_loss", measured.get("mse", -measured["accuracy"])))
    return float(np.mean(losses))


def _check_folds(sets: Sets, *, classes: bool) -> None:
    fewest = len(sets)
    if classes and sets.y is not None and sets.y.ndim == 1:
        fewest = int(np.unique(np.asarray(sets.y), return_counts=True)[1].min())
    if fewest < FOLDS:
        what = "sets of the rarest class" if classes else "sets"
        raise InputError(f"there are {fewest} {what} to train on, fewer than the {FOLDS} folds")


def _study(url: str) -> optuna.Study:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise InputError("tuning needs Optuna: pip install 'capnets[tune]'") from error
    import warnings

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        store = optuna.storages.RDBStorage(
            url,
            heartbeat_interval=HEARTBEAT,
            # Without it the trial of a killed process would count as running for ever.
            heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(),
        )
    return optuna.create_study(storage=store, study_name=STUDY, load_if_exists=True)


def _done(study: optuna.Study) -> int:
    import optuna

    return len(study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE]))


def write_page(study: optuna.Study, folder: Path) -> None:
    """All trials, the best first: `trials.jsonl` for programs, `trials.html` for people."""
    from jinja2 import Environment

    complete = [t for t in study.get_trials(deepcopy=False) if t.value is not None]
    rows = [
        {"trial": t.number, "loss": t.value, **t.params}
        for t in sorted(complete, key=lambda t: (t.value, t.number))
    ]
    write_text(folder / "trials.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    page = Environment(autoescape=True).from_string(PAGE)
    worst = max(r["loss"] for r in rows)
    write_text(folder / "trials.html", page.render(rows=rows, worst=worst or 1.0))


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Trials</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right }
tr:first-child td { font-weight: bold } th { border-bottom: 1px solid }
.bar { display: inline-block; height: .7em; background: #4477aa }
</style>
<h1>{{ rows|length }} trials, the best first</h1>
<p>The loss is the mean over three folds of whole sets.</p>
<table><thead><tr>{% for name in rows[0] %}<th>{{ name }}</th>{% endfor %}<th></th></tr></thead>
<tbody>
{% for row in rows %}<tr>{% for value in row.values() %}
<td>{{ "%.4g"|format(value) if value is number else value }}</td>{% endfor %}
<td style="text-align:left"><span class="bar" style="width:{{ 120 * row.loss / worst }}px"></span>
</td></tr>{% endfor %}
</tbody></table></html>
"""
