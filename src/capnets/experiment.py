"""From a task to a finished run: draw the sets, train, measure, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capnets.errors import InputError
from capnets.evaluate import evaluate, order_sensitivity
from capnets.models import ModelSpec, SetModel, parameters
from capnets.runs import Run, RunConfig
from capnets.sets import Sets
from capnets.tasks import FUNCTIONS, PROTOCOLS, TaskSets, TaskSpec, make, parse_task
from capnets.tasks.files import Progress as FileProgress
from capnets.tasks.sentiment import ReviewSets, ReviewSpec, make_reviews
from capnets.training.fit import History, fit, make_fabric
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["chosen_sets", "measure_task", "task_of", "train_task"]

Progress = Callable[[dict[str, Any]], None]
Task = TaskSpec | ReviewSpec | TaskSets | ReviewSets


def train_task(
    folder: str | Path,
    task: Task,
    model: ModelSpec,
    *,
    recipe: Recipe,
    seed: int = 0,
    priors: Sequence[Prior] = (),
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    loading: FileProgress | None = None,
    fabric: Fabric | None = None,
) -> Run:
    """Train a network on a task into a run folder; the task is made here if it is not yet.

    A finished run is returned as it is when `resume` is given; an unfinished one goes on with the
    same bits as if it had never stopped. `progress` is called after every epoch, `loading` while
    files and features are made that are not there yet.

    With a `fabric` of several processes (see `make_fabric`) the first of them starts the others,
    writes the run and measures it; in the others the run that is returned is not finished.
    """
    spec = task if isinstance(task, TaskSpec | ReviewSpec) else task.spec
    config = RunConfig(
        model=model,
        recipe=recipe,
        seed=seed,
        data={"task": spec.to_dict()},
        priors=tuple(p.to_dict() for p in priors),
    )
    fabric = fabric or make_fabric()
    if not fabric.is_global_zero:  # the first process has made the run and holds its lock
        fabric.launch()
        _fit(run := Run(folder), task, fabric=fabric, priors=priors)
        return run
    model.build(seed)  # what cannot be built is refused before there is a folder
    run = Run.create(folder, config, resume=resume, force=force)
    with run.lock():
        if run.finished:
            return run
        began = time.perf_counter()
        fabric.launch()
        sets = _made(task, loading)
        network, history = _fit(run, sets, fabric=fabric, priors=priors, progress=progress)
        run.write_history(history)
        run.write_weights(network)
        seconds = sum(line["seconds"] for line in history)
        run.finish(
            {
                **measure_task(network, sets),
                "parameters": parameters(network),
                "epochs": len(history),
                "train_seconds": round(seconds, 1),
                "total_seconds": round(max(seconds, time.perf_counter() - began), 1),
            }
        )
    return run


def _fit(
    run: Run,
    task: Task,
    *,
    fabric: Fabric,
    priors: Sequence[Prior],
    progress: Progress | None = None,
) -> tuple[SetModel, History]:
    sets = _made(task)
    network = run.config.model.build(run.config.seed)
    history = fit(
        network,
        sets.train,
        sets.valid,
        recipe=run.config.recipe,
        seed=run.config.seed,
        priors=priors,
        checkpoint=run.checkpoint,
        progress=progress,
        fabric=fabric,
    )
    return network, history


def _made(task: Task, loading: FileProgress | None = None) -> TaskSets | ReviewSets:
    if isinstance(task, TaskSpec):
        return make(task, progress=loading)
    return make_reviews(task, progress=loading) if isinstance(task, ReviewSpec) else task


def measure_task(model: SetModel, task: TaskSets | ReviewSets) -> dict[str, Any]:
    """The quality on validation sets and on the test sets of every protocol that the task has."""
    protocols = PROTOCOLS if isinstance(task, TaskSets) else task.protocols
    parts = {"valid": task.valid, **{p: task.test_sets(p) for p in protocols}}
    result: dict[str, Any] = {
        name: evaluate(model, sets, expected=task.expected(sets)) for name, sets in parts.items()
    }
    if model.ordered:
        first = next(iter(protocols))
        result["orders"] = order_sensitivity(model, parts[first], seed=task.spec.seed)
    return result


def task_of(
    run: Run,
    *,
    test_sets: int | None = None,
    sizes: str | None = None,
    seed: int | None = None,
    progress: FileProgress | None = None,
) -> TaskSets | ReviewSets:
    """The task that a run was trained on, drawn again, with some things changed.

    `progress` is told how far files and features are, where they have to be made first.
    """
    task = run.config.data.get("task", {})
    changes: dict[str, Any] = {"test_sets": test_sets, "sizes": sizes, "seed": seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    if task.get("function") == "sentiment":
        spec = _same_documents(ReviewSpec.from_dict(task), changes)
        return make_reviews(spec, progress=progress)
    if task.get("function") not in FUNCTIONS:
        raise InputError(f"{run.folder} was not trained on a set task; give the file with the sets")
    drawn = TaskSpec.from_dict(task)
    if sizes is not None:
        changes["sizes"] = parse_task(drawn.name, sizes=sizes).sizes
    # Only the test sets matter from here on: training sets are not drawn again in full.
    return make(replace(drawn, **changes, sets=1), progress=progress)


def _same_documents(spec: ReviewSpec, changes: dict[str, Any]) -> ReviewSpec:
    """Refuse to change documents: divided anew, some that were trained on would be tested on."""
    if changes:
        raise InputError(
            f"{', '.join(changes)}: the test documents of {spec.name} are what training left out; "
            "there are no others to draw"
        )
    return spec


def chosen_sets(sets: Sets, numbers: str) -> Sets:
    """The sets that a text such as `0,5,17` names."""
    try:
        chosen = [int(n) for n in numbers.split(",")]
    except ValueError:
        raise InputError(f"sets are numbers with commas between, not {numbers!r}") from None
    for n in chosen:
        if not 0 <= n < len(sets):
            raise InputError(f"there is no set {n}: the sets are 0 to {len(sets) - 1}")
    return sets.subset(chosen)
