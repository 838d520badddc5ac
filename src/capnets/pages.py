"""From a run to an explanation that can be shown: the network, the sets, and how they look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.averaging import mean_prediction
from capnets.estimators.documents import opened
from capnets.estimators.inputs import read
from capnets.estimators.runs import load_estimator
from capnets.experiment import chosen_sets, task_of
from capnets.explain import Explanation, Orders, added_values, shapley_values
from capnets.explain.render.looks import Features, Look, Pictures, Texts, look_of
from capnets.ingest import Schema
from capnets.ingest.sources import Source, open_source
from capnets.models.base import SetModel
from capnets.runs import Run
from capnets.sets import Array, Sets
from capnets.tasks import TaskSets
from capnets.tasks.files import Progress
from capnets.tasks.functions import ClosedForms
from capnets.tasks.sentiment import ReviewSets

__all__ = ["METHODS", "Explained", "explain_run"]

METHODS = {
    "added": "added values, in the given order or averaged over orders",
    "shapley": "Shapley values by real removal; exact unless a number of orders is given",
}


@dataclass(frozen=True, eq=False)
class Explained:
    """An explanation with what is needed to show it.

    Parameters
    ----------
    explanation
        The numbers.
    look
        What the instances look like.
    title, about
        What the page is called, and where it comes from.
    output, probabilities
        For classes: the one that values speak of, and its probability in every set.
    """

    explanation: Explanation
    look: Look
    title: str
    about: str
    output: str | None = None
    probabilities: Array | None = None

    def page(self) -> str:
        """The HTML page."""
        return self.explanation.to_html(look=self.look, title=self.title, about=self.about)

    def to_list(self) -> list[dict[str, Any]]:
        """One JSON object per set, with one per instance in it."""
        frame = self.explanation.to_frame().drop(columns=["set", "instance", "prediction"])
        frame = frame.rename(columns={"value": "added_value"}).drop(
            columns="label", errors="ignore"
        )
        answer = []
        for k in range(len(self.explanation)):
            own = self.explanation.stretch(k)
            instances = [
                self._looks(place) | numbers
                for place, numbers in enumerate(frame[own].to_dict("records"), own.start)
            ]
            labels = self.explanation.labels
            answer.append(
                {
                    "set": self.explanation.name(k),
                    "prediction": float(self.explanation.predictions[k]),
                    **({} if labels is None else {"label": float(labels[k])}),
                    **self._chance(k),
                    "instances": instances,
                }
            )
        return answer

    def _looks(self, place: int) -> dict[str, Any]:
        """What an instance is called, and its features if it is a row of a table."""
        look = self.look
        named = isinstance(look, Texts) or look.names is not None
        about: dict[str, Any] = {"name": look.label(place)} if named else {}
        if isinstance(look, Features):
            row = look.table[place].tolist()
            about["features"] = dict(zip(look.columns, row, strict=True))
        return about

    def _chance(self, k: int) -> dict[str, Any]:
        if self.probabilities is None:
            return {}
        return {"class": self.output, "probability": float(self.probabilities[k])}


def explain_run(
    folder: str | Path,
    file: str | Path | None = None,
    *,
    sets: str = "0",
    method: str = "added",
    orders: int | None = None,
    seed: int = 0,
    output: str | None = None,
    show: str | None = None,
    progress: Progress | None = None,
) -> Explained:
    """Explain some sets with the network of a run.

    Parameters
    ----------
    folder
        The run.
    file
        The sets, for a run on a file; a run on a task draws its own test sets.
    sets
        Which sets: numbers with commas between.
    method
        `added` or `shapley`.
    orders
        How many random orders to average over; None: one (the given) for a task, as many as the run
        predicts with for a file, exact values for `shapley`.
    seed
        What random orders are drawn from.
    output
        Which label or class, by its name; needed only when there are several.
    show
        The column of the file that says what an instance is: its text, or its name.
    progress
        Told how far files and features of a task are, where they have to be made first.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    run = Run(folder)
    if file is None:
        if show is not None or output is not None:
            raise InputError("a task has one label, and shows its own pictures or sentences")
        task = task_of(run, progress=progress)
        return _explain_task(run, task, sets, method, orders, seed)
    estimator = load_estimator(folder)
    chosen = chosen_sets(_sets(estimator, str(file)), sets)
    names = estimator.output_names()
    if output is not None and output not in names:
        raise unknown("output", output, names)
    number = None if output is None else names.index(output)
    if number is None and len(names) > 1:
        raise InputError(f"this run has several outputs; say which one: {', '.join(names)}")
    if orders is None:
        averaged = Orders.averaging(estimator.n_orders_, seed=seed)
    else:
        averaged = Orders.random(orders, seed=seed)
    found = _explain(estimator.model_, chosen, method, orders, averaged, seed, output=number)
    explained = Explained(
        _named(found, sets) if chosen.ids is None else found,
        _look(chosen, str(file), show, estimator.schema_),
        "What each instance adds" + ("" if number is None else f" to {names[number]}"),
        f"{Path(file).name}, network {run.config.model.name}",
    )
    if isinstance(estimator, SetClassifier):
        return _of_class(explained, estimator, chosen, names[number or 0], number or 0)
    return explained


def _of_class(
    explained: Explained, estimator: SetClassifier, sets: Sets, name: str, number: int
) -> Explained:
    """The same, saying of which class values and sums speak: of two classes, of the second."""
    chances = estimator.link(mean_prediction(estimator.model_, sets, explained.explanation.orders))
    two = estimator.spec_.outputs < chances.shape[1]  # one logit for two classes
    return replace(
        explained,
        title=f"What each instance adds to {name}",
        about=f"{explained.about}, values in logits of {name}",
        output=name,
        probabilities=chances[:, number + two],
    )


def _sets(estimator: SetRegressor | SetClassifier, file: str) -> Sets:
    """The sets of a file, with labels in the unit of predictions where it has them."""
    if isinstance(estimator, SetRegressor):
        try:
            sets = read(file, estimator.schema_ or estimator.columns, labels=True).sets
        except InputError:
            pass  # an explanation needs no labels; what else is wrong is said below
        else:
            if sets.in_features == estimator.n_features_in_:
                return sets
    return estimator._read(file).sets


def _explain_task(
    run: Run, task: TaskSets | ReviewSets, numbers: str, method: str, orders: int | None, seed: int
) -> Explained:
    chosen = chosen_sets(task.test, numbers)
    averaged = Orders() if orders is None else Orders.random(orders, seed=seed)
    found = _explain(run.model, chosen, method, orders, averaged, seed)
    about = f"{task.spec.name}, network {run.config.model.name}"
    if isinstance(task, ReviewSets):
        sentences = tuple(s for document in task.sentences(chosen) for s in document)
        return Explained(_named(found, numbers), Texts(sentences), "What each sentence adds", about)
    function, classes = task.spec.set_function, task.classes(chosen)
    in_one_order = method == "added" and orders is None
    truth = None
    if in_one_order:
        truth = function.added_values(classes, chosen.offsets)
    elif isinstance(function, ClosedForms):
        truth = function.shapley(classes, chosen.offsets)
    return Explained(
        _named(found if truth is None else found.expecting(truth), numbers),
        Pictures(task.pictures(chosen), task.images.white, tuple(str(c) for c in classes)),
        "What each picture adds",
        f"{about}, {task.spec.protocol} pictures. The label of a set: {function.formula}.",
    )


def _explain(
    model: SetModel, sets: Sets, method: str, orders: int | None, averaged: Orders, seed: int,
    *, output: int | None = None,
) -> Explanation:  # fmt: skip
    if method == "shapley":
        return shapley_values(model, sets, orders=orders, seed=seed, output=output)
    return added_values(model, sets, orders=averaged, output=output)


def _named(explanation: Explanation, numbers: str) -> Explanation:
    return replace(explanation, ids=tuple(n.strip() for n in numbers.split(",")))


def _look(sets: Sets, file: str, column: str | None, schema: Schema | None) -> Look:
    plain = look_of(sets)
    text = None if schema is None else schema.columns.text
    column = column or text
    if column is None:
        rows = tuple(str(row) for row in sets.index)
        return replace(plain, names=rows) if isinstance(plain, Features) else plain
    source = open_source(file) if schema is None else opened(file, schema)
    shown = _column(source, column, sets.index)
    long = np.mean([len(words) for words in shown]) > 20
    if long or column == text or not isinstance(plain, Features):
        return Texts(shown)
    return replace(plain, names=shown)


def _column(source: Source, column: str, rows: Array) -> tuple[str, ...]:
    """The texts of a column in some rows of a table."""
    if column not in source.names:
        raise unknown("column", column, source.names)
    texts: list[Any] = []
    for batch in source.with_text([column]).batches([column]):
        texts += batch.column(0).to_pylist()
    return tuple("" if texts[r] is None else str(texts[r]) for r in rows)
