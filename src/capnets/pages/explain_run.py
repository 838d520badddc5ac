"""Explain sets with the network of a run: task, table or documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.estimators.documents import column_texts, opened
from capnets.estimators.runs import load_estimator
from capnets.explain import Explanation, ValueMap, explain
from capnets.explain.maps import tiles_of
from capnets.explain.methods import METHODS
from capnets.explain.render.instances import Features, Images, Instances, Texts, instances_of
from capnets.ingest import FeatureFolder, Schema
from capnets.ingest.columns import MOLECULES
from capnets.ingest.sources import open_source
from capnets.learn.plan import Plan
from capnets.learn.tasks import task_of
from capnets.progress import TitledProgress
from capnets.runs import Run
from capnets.sets import Sets
from capnets.tasks import TaskSets
from capnets.tasks.functions import ClosedForms
from capnets.tasks.sentiment import ReviewSets

__all__ = [
    "choose_sets",
    "displayed",
    "explain_run",
    "map_run",
    "show_task",
]

#: Mean length from which the texts of a column are shown as sentences rather than as names.
SENTENCE_LENGTH = 20


def explain_run(
    folder: str | Path,
    file: str | Path | FeatureFolder | None = None,
    *,
    sets: str | None = None,
    method: str = "added",
    orders: int | None = None,
    seed: int = 0,
    output: str | None = None,
    show: str | None = None,
    progress: TitledProgress | None = None,
) -> Explanation:
    """Explain some sets with the network of a run.

    Parameters
    ----------
    folder
        The run.
    file
        The sets, for a run on a file or on a feature folder; a run on a task draws its own test
        sets.
    sets
        The sets by name, or by number if they have no names, separated by commas. By default the
        first.
    method
        `added` or `shapley`.
    orders
        The number of random orders to average over. By default the given order for a task, the
        orders of the predictions for a file, and exact values for `shapley`.
    seed
        Random seed of the orders.
    output
        The label or class, by name. Required if there are several.
    show
        The column of the file that holds the text or the name of an instance.
    progress
        Called while files and features of a task are prepared.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    run = Run(folder)
    if file is None:
        if show is not None or output is not None:
            raise InputError("a task has one label and shows its own images or sentences")
        return _explain_task(run, task_of(run, progress=progress), sets, method, orders, seed)
    estimator = load_estimator(folder)
    if isinstance(file, FeatureFolder):
        if show is not None:
            raise InputError("--show needs a file: features have no column with names")
        return _explain_folder(
            run, estimator, file, sets, method=method, orders=orders, seed=seed, output=output
        )
    chosen = choose_sets(estimator.to_sets(str(file)), sets)
    found = estimator.explain(chosen, method=method, orders=orders, seed=seed, output=output)
    shown = displayed(chosen, str(file), show, estimator.schema_)
    return replace(
        found,
        ids=_names(chosen, sets),
        instances=_with_drawings(shown, found, chosen, str(file), estimator.schema_),
        source=f"{run.config.model.title}, {Path(file).name}{_calibration(run)}",
    )


def _calibration(run: Run) -> str:
    """Say how probabilities were calibrated; empty if they were not."""
    temperatures = Plan.of(run.config).temperatures
    if not temperatures:
        return ""
    low, high = (f"{t:.3g}" for t in (min(temperatures), max(temperatures)))
    divisor = low if low == high else f"{low} to {high}"
    return f". Calibrated on inner folds: logits are divided by {divisor}"


def _explain_folder(
    run: Run, estimator: Any, data: FeatureFolder, names: str | None, **asked: Any
) -> Explanation:
    """Explain some sets of a feature folder; their instances are tiles at their places."""
    read = estimator.read(data)
    chosen = choose_sets(read.sets, names)
    found: Explanation = estimator.explain(chosen, **asked)
    return replace(
        found,
        ids=_names(chosen, names),
        instances=tiles_of(chosen, read.parts),
        source=f"{run.config.model.title}, {Path(str(data)).name}{_calibration(run)}",
    )


def map_run(
    folder: str | Path,
    data: FeatureFolder,
    *,
    sets: str | None = None,
    orders: int | None = None,
    seed: int = 0,
    output: str | None = None,
) -> tuple[Explanation, list[ValueMap]]:
    """Explain some sets of a feature folder; return the values and a map of every file.

    Parameters
    ----------
    folder
        A run that was trained on a feature folder.
    data
        The folder with the sets to explain.
    sets, orders, seed, output
        As in `explain_run`.
    """
    found = explain_run(folder, data, sets=sets, orders=orders, seed=seed, output=output)
    return found, found.maps()


def choose_sets(sets: Sets, names: str | None) -> Sets:
    """Return the sets that a text such as `0,5,17` or `anna,bert` names; the first for None."""
    if names is None:
        return sets[:1]
    wanted = [name.strip() for name in names.split(",")]
    if sets.ids is None or not any(_is_number(i) for i in map(str, sets.ids)):
        known = {} if sets.ids is None else {str(name): k for k, name in enumerate(sets.ids)}
        return sets.subset([_position(name, known, len(sets)) for name in wanted])
    known = {str(name): k for k, name in enumerate(sets.ids)}
    for name in wanted:
        if name not in known:
            raise unknown("set", name, list(known)[:1000])
    return sets.subset([known[name] for name in wanted])


def _position(name: str, known: dict[str, int], many: int) -> int:
    """Return the position of a set that is given by name or by number."""
    if name in known:
        return known[name]
    if not _is_number(name):
        if known:
            raise unknown("set", name, list(known)[:1000])
        raise InputError(f"these sets have no names: give numbers separated by commas, not {name}")
    if not 0 <= int(name) < many:
        raise InputError(f"there is no set {name}: the sets are 0 to {many - 1}")
    return int(name)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def _names(chosen: Sets, names: str | None) -> tuple[str, ...]:
    """Return the names of the chosen sets; their numbers if they have none."""
    if chosen.ids is not None:
        return tuple(str(name) for name in chosen.ids)
    return tuple(name.strip() for name in (names or "0").split(","))


def _explain_task(
    run: Run,
    task: TaskSets | ReviewSets,
    names: str | None,
    method: str,
    orders: int | None,
    seed: int,
) -> Explanation:
    # Reviews have numbers of all documents as ids; a test set is addressed by its position.
    chosen = choose_sets(replace(task.test, ids=None), names or "0")
    if task.test.ids is not None:
        numbers = [int(name) for name in (names or "0").split(",")]
        chosen = replace(chosen, ids=task.test.ids[numbers])
    found = show_task(
        task, chosen, explain(run.model, chosen, method=method, orders=orders, seed=seed)
    )
    ids = tuple(name.strip() for name in (names or "0").split(","))
    return replace(found, ids=ids, source=f"{run.config.model.title}, {found.source}")


def show_task(task: TaskSets | ReviewSets, sets: Sets, found: Explanation) -> Explanation:
    """Add the images or sentences of a task, its true values and a title to an explanation."""
    source = task.spec.name
    if isinstance(task, ReviewSets):
        sentences = tuple(s for document in task.sentences(sets) for s in document)
        title = "What each sentence adds"
        return replace(found, instances=Texts(sentences), title=title, source=source)
    function, classes = task.spec.set_function, task.classes(sets)
    in_one_order = found.method == "added values" and found.orders.kind == "given"
    if in_one_order:
        found = found.with_expected(function.added_values(classes, sets.offsets))
    elif isinstance(function, ClosedForms):
        found = found.with_expected(function.shapley(classes, sets.offsets))
    return replace(
        found,
        instances=Images(task.pictures(sets), task.images.white, tuple(str(c) for c in classes)),
        title="What each image adds",
        source=f"{source}, {task.spec.protocol} images. The label of a set: {function.formula}.",
    )


def displayed(sets: Sets, file: str, column: str | None, schema: Schema | None) -> Instances | None:
    """Return the instances of a file as features with names, or as sentences."""
    plain = instances_of(sets)
    text = None if schema is None else schema.columns.text
    column = column or text
    if column is None:
        rows = tuple(str(row) for row in sets.index)
        return replace(plain, names=rows) if isinstance(plain, Features) else plain
    source = open_source(file) if schema is None else opened(file, schema)
    shown = column_texts(source, column, sets.index)
    long = np.mean([len(words) for words in shown]) > SENTENCE_LENGTH
    words = column == text and schema is not None and schema.columns.encoder not in MOLECULES
    if words or (long and column != text) or not isinstance(plain, Features):
        return Texts(shown)
    return replace(plain, names=shown)


def _with_drawings(
    shown: Instances | None, found: Explanation, sets: Sets, file: str, schema: Schema | None
) -> Instances | None:
    """Return the instances with a picture of every molecule, coloured by value."""
    if schema is None or schema.columns.encoder not in MOLECULES or sets.ids is None:
        return shown
    from capnets.estimators.molecules import draw

    column = schema.columns.text
    assert isinstance(shown, Features)
    assert column is not None
    smiles = column_texts(open_source(file), column, sets.ids)
    drawings = (
        draw(text, found.values[found.span(k)], schema.columns.encoder)
        for k, text in enumerate(smiles)
    )
    return replace(shown, drawings=tuple(drawings))
