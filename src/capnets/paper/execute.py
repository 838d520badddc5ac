"""Run a job.

Jobs are idempotent: a finished run is read back, an interrupted one resumes from its checkpoint,
and of two processes with the same job the second waits for the first.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capnets.errors import InputError
from capnets.evaluate import added_values, order_sensitivity, predict
from capnets.files.locks import lock_file
from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_problem
from capnets.metrics import mse, regression
from capnets.models import ModelSpec, SetModel, parameters
from capnets.paper.jobs import Job, LabelJob, ShapeJob, TrainingJob
from capnets.paper.names import RIDGE, TASKS
from capnets.paper.provenance import provenance
from capnets.paper.published.interpretability import EXAMPLES
from capnets.paper.results import Record
from capnets.runs import Run
from capnets.sets import Sets
from capnets.tasks import PROTOCOLS, TaskSets, TaskSpec, make
from capnets.tasks.drawing import STREAMS, draw_labels
from capnets.tasks.sentiment import ReviewSets, ReviewSpec, make_reviews, pooled_ridge
from capnets.training.callbacks import EpochEnd
from capnets.training.checkpoint import Checkpoint
from capnets.training.fit import Diverged
from capnets.training.priors import prior_from_dict
from capnets.training.recipe import Recipe, recipe

__all__ = ["VERSION", "current", "is_stale", "made", "run_job"]

# Raised when earlier results are no longer comparable: another drawing of sets, another
# measurement. Older records are then stale. Other random numbers alone do not make them so.
VERSION = 1

# Claims are evaluated on this many times as many test sets as the tables.
LARGER = 10
BLOCKS = 100

MEASURES = ("mse", "mae", "accuracy", "added_value_error")

# Training draws from torch's own generator and shares it with all threads of a process.
_ONE_AT_A_TIME = threading.Lock()


def run_job(job: Job, *, runs: Path, progress: Callable[[int], None] | None = None) -> Record:
    """Run a job and return its record.

    Parameters
    ----------
    runs
        The folder of run folders.
    progress
        Called with the number of finished epochs.
    """
    with _ONE_AT_A_TIME:
        torch.set_num_threads(1)
        began, cpu = time.perf_counter(), time.process_time()
        failure, reason = None, ""
        metrics: dict[str, Any] = {}
        cost: dict[str, Any] = {}
        try:
            if isinstance(job, ShapeJob):
                metrics = _size(job)
            elif isinstance(job, LabelJob):
                metrics = _labels(job)
            else:
                metrics, cost = _run(job, runs, progress)
        except Diverged as error:
            failure, reason = "diverged", str(error)
        except (MemoryError, torch.OutOfMemoryError) as error:
            failure, reason = "out of memory", str(error) or type(error).__name__
        seconds = time.perf_counter() - began
        return Record(
            job=job,
            metrics=metrics,
            failure=failure,
            reason=reason,
            made=made(job),
            cost={
                "train_seconds": round(seconds, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                **cost,
            },
        )


def is_stale(record: Record) -> bool:
    """Return whether the same job would give another result today."""
    if record.made.get("version") != VERSION:
        return True
    if not isinstance(record.job, TrainingJob):
        return False
    try:
        # Settings that recipes did not have at the time have their defaults.
        then, now = Recipe.from_dict(record.made["recipe"]), _recipe(record.job)
    except (KeyError, InputError):
        return True
    # A run of all epochs saw at least as many as any patience allows.
    if record.metrics.get("epochs") == then.epochs:
        then = replace(then, patience=now.patience)
    return then != now


def current(records: Mapping[str, Record]) -> dict[str, Record]:
    """Return the records that are not stale."""
    return {key: record for key, record in records.items() if not is_stale(record)}


def made(job: Job) -> dict[str, Any]:
    """Return how a job would be run today."""
    how: dict[str, Any] = {"version": VERSION, **provenance()}
    if isinstance(job, TrainingJob):
        how["recipe"] = _recipe(job).to_dict()
    return how


# Training -----------------------------------------------------------------------------------------


def _run(
    job: TrainingJob, runs: Path, progress: Callable[[int], None] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    task = _task(job)
    if job.model == RIDGE:
        return _ridge(task), {}
    problem = task_problem(task)
    asked = Options(
        model=job.model,
        hidden=job.hidden,
        layers=job.layers,
        activation=job.activation or "abs",
        aggregation=job.aggregation or "sum",
        baseline=job.baseline or "none",
        recipe=_recipe(job),
        seed=job.seed,
        priors=tuple(prior_from_dict(prior) for prior in job.priors),
    )
    plan = make_plan(problem, asked)
    folder = runs / f"{job.key}-{VERSION}"
    with _alone(folder):
        resumed = _is_usable(folder, plan.model, plan.recipe)
        if not resumed:
            shutil.rmtree(folder, ignore_errors=True)
        run = train(
            problem,
            plan,
            folder,
            resume=True,
            callbacks=[EpochEnd(lambda line: progress(line["epoch"]))] if progress else [],
        )
    found = run.metrics
    metrics: dict[str, Any] = {
        "parameters": found["parameters"],
        "epochs": found["epochs"],
        "valid_mse": found["valid"]["mse"],
        "curve": [float(f"{line['valid']:.5g}") for line in run.history],
    }
    if isinstance(task, ReviewSets):
        # One protocol only, so these numbers belong to every view of the record.
        metrics |= {k: found["held-out"][k] for k in (*MEASURES, "r2") if k in found["held-out"]}
        metrics["block_mse"] = _block_errors(run.model, task.test)
    else:
        for protocol in PROTOCOLS:
            metrics[protocol] = {k: found[protocol][k] for k in MEASURES if k in found[protocol]}
            metrics[protocol] |= _more(run.model, job, task, protocol)
            metrics[protocol]["block_mse"] = _block_errors(run.model, _larger(task, protocol))
            if not np.isfinite(metrics[protocol]["mse"]):
                raise Diverged("the test error is not a number")
    cost = {"train_seconds": found["train_seconds"], "resumed": resumed}
    return metrics, cost | ({"cpu_seconds": None} if resumed else {})  # the first part is not known


def _ridge(task: TaskSets | ReviewSets) -> dict[str, Any]:
    if not isinstance(task, ReviewSets):
        raise InputError(f"{RIDGE} is a baseline for documents only")
    predict = pooled_ridge(task)
    measured = regression(task.test.y, predict(task.test))
    return {
        "epochs": 0,
        "valid_mse": mse(task.valid.y, predict(task.valid)),
        **{k: measured[k] for k in (*MEASURES, "r2") if k in measured},
    }


def _larger(task: TaskSets, protocol: str) -> Sets:
    """Draw more test sets; the first of them are those of the task."""
    spec = replace(task.spec, sets=1, valid_sets=1, test_sets=LARGER * task.spec.test_sets)
    return _sets(spec).test_sets(protocol)


def _block_errors(model: SetModel, sets: Sets) -> list[float]:
    """Return the mean squared error of each of `BLOCKS` blocks of consecutive test sets.

    All networks of a task see the same sets, so blocks of two networks are pairs. They are enough
    for a paired bootstrap over test sets, in a hundredth of the space.
    """
    assert sets.y is not None
    errors = (predict(model, sets) - sets.y) ** 2
    blocks = np.array_split(errors, min(BLOCKS, len(errors)))
    return [float(f"{block.mean():.6g}") for block in blocks]


def _more(model: SetModel, job: TrainingJob, task: TaskSets, protocol: str) -> dict[str, Any]:
    """Measure what only the paper asks for: errors under five orders, values of its examples."""
    more: dict[str, Any] = {}
    if model.ordered:
        orders = order_sensitivity(model, task.test_sets(protocol), orders=5, seed=job.data_seed)
        more |= {"order_mse": sorted(orders["mse"]), "order_spread": orders["spread"]}
    example = next((e for short, e in EXAMPLES.items() if TASKS[short] == job.task), None)
    if example is not None and job.sizes == (len(example.classes),):
        values = added_values(model, _example(example.classes, job, task, protocol)).tolist()
        more["example"] = [*values, sum(values)]
    return more


def _example(classes: tuple[int, ...], job: TrainingJob, task: TaskSets, protocol: str) -> Sets:
    """Draw one set of images of the given classes; the paper's own images are not known."""
    rows = task.images.rows("test" if protocol == "held-out" else "train")
    draw = np.random.default_rng([job.data_seed, len(STREAMS)])
    chosen = [draw.choice(rows[task.images.classes[rows] == c]) for c in classes]
    return Sets(task.train.instances, np.array(chosen), np.array([0, len(chosen)]))


def _recipe(job: TrainingJob) -> Recipe:
    return recipe(job.recipe, epochs=job.epochs, learning_rate=job.learning_rate)


def _task(job: TrainingJob) -> TaskSets | ReviewSets:
    if job.task == "sentiment":
        return _reviews(ReviewSpec(job.source, job.embedding, seed=job.data_seed))
    if job.sets is None or job.valid_sets is None or job.test_sets is None:
        raise InputError(f"the number of sets of {job.task} is missing")
    return _sets(
        TaskSpec(
            job.task,
            job.source,
            job.embedding,
            sizes=job.sizes,
            sets=job.sets,
            valid_sets=job.valid_sets,
            test_sets=job.test_sets,
            seed=job.data_seed,
        )
    )


@lru_cache(maxsize=8)
def _sets(spec: TaskSpec) -> TaskSets:
    """Draw sets once for all networks that a process trains with them."""
    return make(spec)


@lru_cache(maxsize=1)
def _reviews(spec: ReviewSpec) -> ReviewSets:
    return make_reviews(spec)


def _is_usable(folder: Path, model: ModelSpec, how: Recipe) -> bool:
    """Return whether the folder holds a run to resume or to read back.

    False if the recipe has changed since it was started, or if any of its files is damaged.
    """
    try:
        run = Run(folder)
        if (run.config.model, run.config.recipe) != (model, how):
            return False
        if not run.finished:
            if run.checkpoint.exists():
                Checkpoint.read(run.checkpoint)
            return True
        _ = run.model
        return {"valid", "train_seconds"} <= run.metrics.keys() and (
            len(run.history) == run.metrics["epochs"]
        )
    except (InputError, KeyError):
        return False


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Wait until no other process trains into the folder.

    A process that is being killed, or that a cluster gave up on too early, may still be training.
    """
    return lock_file(folder.with_name(f".{folder.name}.job"))


# Jobs without training ----------------------------------------------------------------------------


def _size(shape: ShapeJob) -> dict[str, Any]:
    model = ModelSpec(
        shape.model, in_features=shape.in_features, hidden=shape.hidden, layers=shape.layers
    )
    return {"parameters": parameters(model.build(seed=0))}


def _labels(labels: LabelJob) -> dict[str, Any]:
    y = draw_labels(
        TaskSpec(
            labels.task,
            labels.source,
            embedding="none",
            sizes=labels.sizes,
            sets=labels.sets,
            seed=labels.data_seed,
        )
    )
    return {
        "label_mean": float(y.mean()),
        "label_median": float(np.median(y)),
        "label_variance": float(y.var()),
        "label_stdev": float(y.std()),
        "label_counts": np.bincount(y.astype(int)).tolist(),
    }
