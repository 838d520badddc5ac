"""Problems from set tasks and reviews, and the task that a run was trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from capnets.errors import InputError
from capnets.learn.problem import Problem
from capnets.progress import TitledProgress
from capnets.runs import Run
from capnets.tasks import FUNCTIONS, PROTOCOLS, TaskSets, TaskSpec, make, parse_task
from capnets.tasks.sentiment import (
    ReviewSets,
    ReviewSpec,
    is_sentiment,
    make_reviews,
    parse_reviews,
)

__all__ = ["Task", "parse", "task_of", "task_problem"]

Task = TaskSpec | ReviewSpec | TaskSets | ReviewSets


def parse(
    text: str, *, embedding: str | None = None, seed: int = 0, **drawing: Any
) -> TaskSpec | ReviewSpec:
    """Return the task that a short text such as `US:mnist` or `sentiment` names.

    `drawing` says how sets of images are drawn, as in `parse_task`. Reviews have a fixed number of
    documents, so it is refused for them.
    """
    if not is_sentiment(text):
        return parse_task(text, embedding=embedding, seed=seed, **drawing)
    if drawing:
        names = ", ".join(drawing)
        raise InputError(
            f"{names} cannot be chosen for {text!r}: reviews have a fixed number of documents"
        )
    return parse_reviews(text, embedding=embedding, seed=seed)


def task_problem(task: Task, *, progress: TitledProgress | None = None) -> Problem:
    """Return the problem of a task; its sets are drawn here if they are not drawn yet.

    `progress` is called while files are fetched and features computed.
    """
    if isinstance(task, TaskSpec):
        task = make(task, progress=progress)
    elif isinstance(task, ReviewSpec):
        task = make_reviews(task, progress=progress)
    origin = {"task": task.spec.to_dict()}
    if isinstance(task, ReviewSets):
        tests = {name: task.test_sets(name) for name in task.protocols}
        return Problem(
            task.train, valid=task.valid, tests=tests, origin=origin, instances="vectors"
        )
    pictures = task.spec.embedding == "none" and task.spec.source != "digits"
    return Problem(
        task.train,
        valid=task.valid,
        tests={name: task.test_sets(name) for name in PROTOCOLS},
        origin=origin,
        instances="pictures" if pictures else "vectors",
        exact=True,
        expected=task.expected,
    )


def task_of(
    run: Run,
    *,
    test_sets: int | None = None,
    sizes: str | None = None,
    seed: int | None = None,
    progress: TitledProgress | None = None,
) -> TaskSets | ReviewSets:
    """Return the task that a run was trained on, drawn again, with some settings changed."""
    task = run.config.data.get("task", {})
    changes: dict[str, Any] = {"test_sets": test_sets, "sizes": sizes, "seed": seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    if task.get("function") == "sentiment":
        spec = ReviewSpec.from_dict(task)
        if changes:  # split anew, documents that were trained on would be tested on
            raise InputError(
                f"{', '.join(changes)}: the test documents of {spec.name} are those that training "
                "left out; there are no others to draw"
            )
        return make_reviews(spec, progress=progress)
    if task.get("function") not in FUNCTIONS:
        raise InputError(f"{run.folder} was not trained on a set task; give the file with the sets")
    drawn = TaskSpec.from_dict(task)
    if sizes is not None:
        changes["sizes"] = parse_task(drawn.name, sizes=sizes).sizes
    # Only test sets are needed from here on, so the training sets are not drawn in full.
    return make(replace(drawn, **changes, sets=1), progress=progress)
