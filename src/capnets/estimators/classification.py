"""Predict classes: one of two, one of many, or several labels at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.per_set import named
from capnets.ingest.columns import Columns
from capnets.ingest.encode import as_text
from capnets.sets import Array, Sets
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

__all__ = ["SetClassifier"]


class SetClassifier(ClassifierMixin, SetEstimator):  # type: ignore[misc]
    """Predict the class of a set, and the value each instance adds to the logit of every class.

    Parameters are those of `SetRegressor`, and:

    Parameters
    ----------
    class_weight
        None, `balanced`, or a dictionary from classes to weights (for several labels at once a list
        of them), as everywhere in scikit-learn.

    calibrate
        Whether to divide logits by a temperature from inner folds. Only with fewer than 5,000 sets,
        where networks are overconfident.

    Attributes
    ----------
    classes_
        The classes; for several labels at once the numbers of the labels.

    Notes
    -----
    Two classes have one logit, that of the second: `added_values` then gives one number per
    instance. With more classes, or several labels at once, it gives one per class.

    Examples
    --------
    >>> X = [np.random.default_rng(k).normal(k % 2, 0.5, (3, 2)) for k in range(40)]
    >>> y = ["odd" if k % 2 else "even" for k in range(40)]
    >>> model = SetClassifier(members=1, epochs=10, random_state=0).fit(X, y)
    >>> model.predict(X[:2]).tolist(), model.predict_proba(X).shape
    (['even', 'odd'], (40, 2))
    """

    classifies = True

    def __init__(
        self,
        model: str | None = None,
        *,
        columns: Columns | str | None = None,
        hidden: int | None = None,
        aggregation: str | None = None,
        baseline: str | None = None,
        network: Mapping[str, Any] | None = None,
        members: int | None = None,
        orders: int | None = None,
        sort: str | int | None = None,
        priors: Sequence[Prior] | None = None,
        recipe: str | Recipe | Mapping[str, Any] | None = None,
        epochs: int | None = None,
        early_stopping: bool | float | str = "auto",
        class_weight: Any = None,
        calibrate: bool = True,
        random_state: Any = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            model, columns=columns, hidden=hidden, aggregation=aggregation, baseline=baseline,
            network=network, members=members, orders=orders, sort=sort, priors=priors,
            recipe=recipe, epochs=epochs, early_stopping=early_stopping,
            random_state=random_state, device=device, verbose=verbose,
        )  # fmt: skip
        self.class_weight = class_weight
        self.calibrate = calibrate

    def __sklearn_tags__(self) -> Any:
        """Declare that y may hold several labels at once."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # X may hold the labels
        tags.classifier_tags.multi_label = True
        return tags

    @property
    def classes_(self) -> Array:
        """The classes; for several labels at once the numbers of the labels."""
        target = self.target_
        return np.arange(target.outputs) if self.multilabel_ else np.array(target.classes)

    @property
    def multilabel_(self) -> bool:
        """Return whether a set has several labels at once."""
        return self.target_.kind == "labels"

    def decision_function(self, X: Any) -> Array:
        """Return logits, the sums of the added values: one per set for two classes, else a row."""
        raw = self.raw(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Array:
        """Return probabilities, sets x classes; rows sum to 1 except for several labels at once."""
        raw = self.raw(X)
        return self.target_.probabilities(raw)

    def predict(self, X: Any) -> Array:
        """Return the likeliest class of every set, in the order of `set_ids`.

        For several labels at once, return rows of 0 and 1.
        """
        raw = self.raw(X)
        return self.target_.decide(raw)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of sets whose class (whose labels, all of them) is right; y as in `fit`.

        Sets are read as in `predict`.
        """
        return float(super().score(*self._labelled(X, y, sample_weight)))

    def _comparable(self, labels: Array, sets: Sets) -> Array:
        """Return labels in the type of `classes_`, matching text and numbers by their names.

        Labels of the same type may be classes that were never seen; no prediction is right there.
        """
        flat = labels.reshape(-1) if labels.shape[1:] == (1,) else labels
        if self.multilabel_ or flat.ndim > 1 or _are_text(flat) == _are_text(self.classes_):
            return labels
        places = {as_text(c): k for k, c in enumerate(self.classes_.tolist())}
        found = np.array([places.get(as_text(c), -1) for c in flat.tolist()])
        if (found < 0).any():
            k = int(np.argmax(found < 0))
            raise InputError(
                f"{named(sets, k)} has the label {as_text(flat.tolist()[k])}, no known class "
                f"({', '.join(places)}); give labels as the classes are called in training"
            )
        known: Array = self.classes_[found]
        return known


def _are_text(values: Array) -> set[bool]:
    """Return {True} for text, {False} for other values, and both for a mixture."""
    return {isinstance(value, str) for value in values.tolist()}
