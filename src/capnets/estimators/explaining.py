"""Explain the predictions of estimators: with names, classes and probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.estimators.documents import column_texts, opened
from capnets.estimators.inputs import is_table, known_table
from capnets.explain import Explanation, explain
from capnets.explain.added import with_caution
from capnets.explain.maps import tiles_of
from capnets.explain.render.instances import Features, Texts
from capnets.explain.subject import output_index
from capnets.ingest import FeatureFolder, Schema, SetData
from capnets.learn.averaging import mean_prediction
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders

if TYPE_CHECKING:
    from capnets.estimators.base import SetEstimator

__all__ = ["explain_estimator"]


def explain_estimator(
    estimator: SetEstimator,
    X: Any,
    *,
    method: str,
    orders: Orders | int | None,
    seed: int,
    output: int | str | None,
) -> Explanation:
    """Explain sets that an estimator reads; see `SetEstimator.explain`."""
    folder = isinstance(X, FeatureFolder)
    data = estimator.read(X) if folder else estimator.read_known(X)
    sets = data.sets
    names = estimator.output_names()
    index = output_index(_of_classes(estimator, output), names)
    chosen: Orders | int | None = orders
    if orders is None and method == "added":
        chosen = Orders.averaging(estimator.n_orders_, seed=seed)
    # Labels are compared with predictions, which are logits or log-hazards there.
    unlabelled = sets if estimator.target_.kind == "amount" else replace(sets, y=None)
    found = explain(
        estimator.model_, unlabelled, method=method, orders=chosen, seed=seed, output=index or 0
    )
    found = with_caution(found, estimator.model_, estimator.config_.sizes)
    if folder:
        found = replace(found, instances=tiles_of(sets, data.parts))
    elif is_table(X) and estimator.schema_ is not None:
        found = _with_sentences(_with_rows(found, data), X, estimator.schema_, sets)
    if estimator.target_.kind == "survival":
        return replace(found, unit="log-hazard")
    if estimator.target_.kind == "count":
        found = replace(found, unit="logarithm")
    if not estimator.classifies:
        return replace(found, output=names[index or 0] if len(names) > 1 else "")
    return _with_classes(estimator, found, sets, index or 0)


def _with_rows(found: Explanation, data: SetData) -> Explanation:
    """Name the instances as the rows of the table are named."""
    if data.row_names is None or not isinstance(found.instances, Features):
        return found
    names = tuple(str(data.row_names[row]) for row in data.sets.index)
    return replace(found, instances=replace(found.instances, names=names))


def _with_sentences(found: Explanation, X: Any, schema: Schema, sets: Sets) -> Explanation:
    """Display documents as sentences in place of their vectors."""
    text = schema.columns.text
    if text is None:
        return found
    shown = column_texts(opened(known_table(X), schema), text, sets.index)
    return replace(found, instances=Texts(shown))


def _of_classes(estimator: Any, output: int | str | None) -> int | str | None:
    """Accept any class by its own value; of two classes only the second has a logit."""
    if output is None or not estimator.classifies or isinstance(output, int):
        return output
    names = estimator.output_names()
    classes = [str(c) for c in estimator.classes_]
    if len(classes) == 2 and len(names) == 1 and output == classes[0]:
        raise InputError(
            f"of two classes only the second, {names[0]!r}, has a logit; the values of "
            f"{output!r} are the same with the opposite sign"
        )
    return output


def _with_classes(estimator: Any, found: Explanation, sets: Sets, index: int) -> Explanation:
    """Add class names and probabilities, which a network alone does not know."""
    raw = mean_prediction(estimator.model_, sets, found.orders)
    shares = estimator.target_.probabilities(raw)
    one_logit = estimator.spec_.outputs < shares.shape[1]
    predicted = None
    if not estimator.multilabel_:
        predicted = tuple(str(c) for c in estimator.classes_[shares.argmax(axis=1)])
    return replace(
        found,
        output=estimator.output_names()[index],
        unit="logit",
        probabilities=shares[:, index + one_logit],
        predicted_classes=predicted,
        true_classes=_true_classes(estimator, sets, index),
    )


def _true_classes(estimator: Any, sets: Sets, index: int) -> tuple[str, ...] | None:
    if sets.y is None:
        return None
    y: Array = np.asarray(sets.y)
    if estimator.multilabel_:
        return tuple("yes" if v else "no" for v in y.reshape(len(sets), -1)[:, index])
    return tuple(str(estimator.classes_[int(v)]) for v in y.reshape(len(sets), -1)[:, 0])
