"""Collect the example sets of an interactive page: instances, labels and how to show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.runs import load_estimator
from capnets.explain import explain
from capnets.explain.maps import tiles_of
from capnets.explain.render.instances import MOST_NUMBERS, Features, Images, Instances
from capnets.ingest import FeatureFolder, Schema
from capnets.learn.tasks import task_of
from capnets.pages.explain_run import choose_sets, displayed, show_task
from capnets.progress import TitledProgress
from capnets.runs import Run
from capnets.sets import Array, Sets
from capnets.tasks import TaskSets

__all__ = ["Examples", "Pixels", "examples_of"]

#: Number of sets on a page unless some are named.
SETS = 12
#: Preferred numbers of instances of these sets.
READABLE = (3, 12)
#: Number of instances in the tray of a page.
TRAY = 30
#: Numbers on a page of a feature folder unless sets are named: 4 bytes each.
FEW_NUMBERS = 2**22


@dataclass(frozen=True)
class Pixels:
    """Standardization of drawn pixels: (brightness - mean) / deviation.

    Parameters
    ----------
    height, width
        The size of an image.
    mean
        One number per pixel, or one for all.
    deviation
        One number for all pixels.
    """

    height: int
    width: int
    mean: tuple[float, ...]
    deviation: float


@dataclass(frozen=True, eq=False)
class Examples:
    """Example sets of a page.

    Parameters
    ----------
    sets
        The sets; the instances that they share are the rows of `sets.instances`.
    instances
        How to display each row of `sets.instances`.
    tray
        Rows that can be added to a set.
    names
        The names of the sets.
    labels
        The label of each set as text; None if unknown.
    source
        Where sets and networks come from.
    schema
        How rows of a table are encoded; None if the sets do not come from a table.
    unit
        Unit of the label, in words.
    pixels
        How drawings are encoded; None if the network does not read pixels.
    """

    sets: Sets
    instances: Instances
    tray: tuple[int, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...] | None
    source: str
    schema: Schema | None = None
    unit: str = ""
    pixels: Pixels | None = None


def examples_of(
    run: Run,
    file: str | Path | FeatureFolder | None = None,
    *,
    sets: str | None = None,
    show: str | None = None,
    protocol: str | None = None,
    progress: TitledProgress | None = None,
) -> Examples:
    """Return example sets for a run: of its task, or of a file.

    Parameters
    ----------
    run
        The run.
    file
        The sets, for a run on a file or on a feature folder.
    sets
        The sets by name or number, separated by commas; by default the first dozen.
    show
        The column of the file that holds the text or the name of an instance.
    protocol
        For a task: `shared` for images seen in training, `held-out` for others; by default that of
        the run.
    progress
        Called while files and features of a task are prepared.
    """
    if file is None:
        return _of_task(run, sets, protocol, progress)
    estimator = load_estimator(run.folder)
    shown: Instances | None
    if isinstance(file, FeatureFolder):
        if show is not None:
            raise InputError("--show needs a file: features have no column with names")
        read = estimator.read(file)
        every = read.sets
        chosen = every.subset(_small(every)) if sets is None else choose_sets(every, sets)
        _check_numbers(chosen)
        shown = tiles_of(chosen, read.parts)
    else:
        every = estimator.to_sets(str(file))
        chosen = every.subset(_readable(every)) if sets is None else choose_sets(every, sets)
        _check_numbers(chosen)
        shown = displayed(chosen, str(file), show, estimator.schema_)
        if show is None and isinstance(shown, Features) and shown.names is not None:
            shown = replace(shown, names=tuple(f"row {name}" for name in shown.names))
    assert shown is not None
    labels = None
    if chosen.y is not None:
        labels = tuple(_label(estimator, np.atleast_1d(y)) for y in chosen.y)
    compact = _compact(chosen)
    schema = estimator.schema_
    names = range(len(chosen)) if chosen.ids is None else chosen.ids
    return Examples(
        sets=compact,
        instances=shown,
        tray=() if isinstance(file, FeatureFolder) else _tray(compact),
        names=tuple(str(name) for name in names),
        labels=labels,
        source=Path(str(file)).name,
        schema=schema if schema is not None and schema.columns.text is None else None,
        unit="" if schema is None or estimator.classifies else " and ".join(schema.columns.target),
    )


def _of_task(
    run: Run, names: str | None, protocol: str | None, progress: TitledProgress | None
) -> Examples:
    task = task_of(run, progress=progress)
    test = task.test if protocol is None else task.test_sets(protocol)
    every = replace(test, ids=None)
    numbers = names or ",".join(str(k) for k in _instructive(task, every))
    chosen = choose_sets(every, numbers)
    wanted = [int(n) for n in numbers.split(",")]
    if test.ids is not None:
        chosen = replace(chosen, ids=test.ids[wanted])
    extra = _one_of_each(task, test) if isinstance(task, TaskSets) else ()
    found = show_task(task, chosen, explain(run.model, chosen))
    shown, compact = found.instances, _compact(chosen)
    assert shown is not None
    tray = _tray(compact)
    if isinstance(task, TaskSets) and len(extra):
        rows = np.asarray(extra, dtype=np.int64)
        assert isinstance(shown, Images)
        tray = tuple(range(len(compact.instances), len(compact.instances) + len(rows)))
        pixels = np.concatenate([shown.pixels, task.images.pixels[rows]])
        captions = (*(shown.names or ()), *(str(c) for c in task.images.classes[rows]))
        shown = Images(pixels, shown.white, captions)
        table = np.concatenate([compact.instances, np.asarray(test.instances[rows])])
        compact = replace(compact, instances=table.astype(np.float32))
    y = chosen.y
    return Examples(
        sets=compact,
        instances=shown,
        tray=tray,
        names=tuple(n.strip() for n in numbers.split(",")),
        labels=None if y is None else tuple(f"{float(v):g}" for v in y),
        source=_source(task, protocol),
        pixels=_pixels(task) if isinstance(task, TaskSets) else None,
    )


def _pixels(task: TaskSets) -> Pixels | None:
    """Return how a task turns pixels into features, if it does so pixel by pixel."""
    images, features = task.images, np.asarray(task.test.instances, dtype=np.float64)
    if images.pixels.ndim != 3 or task.spec.embedding != "none":
        return None
    brightness = (images.pixels / images.white).reshape(len(images.pixels), -1)
    features = features.reshape(len(features), -1)
    deviation = float(brightness.std(0).sum() / features.std(0).sum())
    mean = (brightness - deviation * features).mean(0)
    height, width = images.pixels.shape[1:]
    return Pixels(height, width, tuple(float(m) for m in mean), deviation)


def _source(task: Any, protocol: str | None) -> str:
    """Return what the sets are, and the rule of their labels."""
    if not isinstance(task, TaskSets):
        return str(task.spec.name)
    seen = (protocol or task.spec.protocol) == "shared"
    images = "images seen in training" if seen else "images not seen in training"
    formula = task.spec.set_function.formula
    return f"{task.spec.name}, new sets of {images}. The label of a set: {formula}."


def _compact(sets: Sets) -> Sets:
    """Return the sets with one table row per use of an instance, and nothing else."""
    rows = np.asarray(sets.instances[sets.index], dtype=np.float32)
    return replace(sets, instances=rows, index=np.arange(len(rows)), classes=None, coords=None)


def _tray(sets: Sets) -> tuple[int, ...]:
    """Return rows spread over all sets, none of them twice."""
    _, first = np.unique(sets.instances.reshape(len(sets.instances), -1), axis=0, return_index=True)
    chosen = np.linspace(0, len(first) - 1, min(TRAY, len(first))).round().astype(np.int64)
    return tuple(int(row) for row in np.unique(np.sort(first)[chosen]))


def _instructive(task: Any, sets: Sets) -> Sequence[int]:
    """Return sets whose instances repeat, if the task knows classes; else readable ones."""
    if not isinstance(task, TaskSets):
        return _readable(sets)
    repeats = [
        k
        for k in range(min(200, len(sets)))
        if 4 <= sets.sizes[k] <= 10 and _repeats(task.images.classes[sets.rows(k)])
    ]
    return repeats[:SETS] or _readable(sets)


def _readable(sets: Sets) -> Sequence[int]:
    """Return the first sets that have several instances, but not too many to read; all of few."""
    if len(sets) <= SETS:
        return range(len(sets))
    low, high = READABLE
    found = np.flatnonzero((sets.sizes >= low) & (sets.sizes <= high))[:SETS]
    return [int(k) for k in found] or range(min(SETS, len(sets)))


def _small(sets: Sets) -> Sequence[int]:
    """Return the first sets that together have few numbers, at least one."""
    numbers = np.cumsum(sets.sizes[:SETS]) * int(np.prod(sets.feature_shape))
    return range(max(1, int((numbers <= FEW_NUMBERS).sum())))


def _check_numbers(sets: Sets) -> None:
    """Refuse sets that would make a page too large for a browser."""
    numbers = len(sets.index) * int(np.prod(sets.feature_shape))
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"these {len(sets)} sets hold {numbers:,} numbers, too many for a page (the limit is "
            f"{MOST_NUMBERS:,}); name fewer or smaller ones with --sets"
        )


def _repeats(classes: Array) -> bool:
    """Return whether a class above 5 appears twice, which shows best."""
    values, counts = np.unique(classes, return_counts=True)
    return bool((counts[values > 5] == 2).any())


def _one_of_each(task: TaskSets, sets: Sets) -> Sequence[int]:
    """Return two images of every class that the sets use."""
    rows = np.unique(sets.index)
    classes = task.images.classes[rows]
    return [int(r) for c in np.unique(classes) for r in rows[classes == c][:2]]


def _label(estimator: Any, y: Array) -> str:
    """Return the label of a set in words."""
    if not estimator.classifies:
        return ", ".join(f"{float(v):.6g}" for v in y)
    if len(y) > 1:
        names = estimator.output_names()
        return ", ".join(n for n, v in zip(names, y, strict=True) if v) or "none"
    return str(estimator.classes_[int(y[0])])
