"""Classes: one of two, one of many, or several at once.

Added values live in logit space and are signed. They are summed first and the link (logistic or
softmax) is applied to the sum alone, so they stay additive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator
from capnets.estimators.inputs import Given
from capnets.estimators.per_set import named
from capnets.ingest.columns import Columns
from capnets.ingest.encode import as_text
from capnets.models.capacity import ACTIVATIONS
from capnets.sets import Array, Sets
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

__all__ = ["SetClassifier"]


class SetClassifier(ClassifierMixin, SetEstimator):  # type: ignore[misc]
    """Predict the class of a set, and what each instance adds to the logit of every class.

    Parameters are those of `SetRegressor`, and:

    Parameters
    ----------
    class_weight
        None, `balanced`, or a dictionary from classes to weights (for several labels at once a list
        of them), as everywhere in scikit-learn.

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

    def __init__(
        self,
        model: str = "c-gru",
        *,
        columns: Columns | str | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        activation: str = "identity",
        dropout: float | None = None,
        members: int | None = None,
        orders: int | None = None,
        sort: str | int | None = None,
        priors: Sequence[Prior] | None = None,
        recipe: str | Recipe | Mapping[str, Any] | None = None,
        epochs: int | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            model, columns=columns, hidden=hidden, layers=layers, activation=activation,
            dropout=dropout, members=members, orders=orders, sort=sort, priors=priors,
            recipe=recipe, epochs=epochs, early_stopping=early_stopping,
            validation_fraction=validation_fraction, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.class_weight = class_weight

    classifies = True

    def _targets(self, labels: Array, given: Given | None) -> tuple[Array, str, int, Array | None]:
        if self.activation != "identity" and self.activation in ACTIVATIONS:
            raise InputError(
                f"activation {self.activation!r} gives no negative values, and logits need them; "
                "use activation='identity'"
            )
        numbers = self._learn_classes(labels, given)
        # The classes of a table are numbered already; class weights are told by their names.
        called = labels if self.multilabel_ else self.classes_[numbers.astype(np.int64)]
        two = not self.multilabel_ and len(self.classes_) == 2
        loss = "logistic" if self.multilabel_ or two else "softmax"
        outputs = 1 if two else len(self.classes_)
        return numbers, loss, outputs, self._class_weights(called)

    def _learn_classes(self, labels: Array, table: Given | None) -> Array:
        self.multilabel_ = labels.ndim == 2 and labels.shape[1] > 1
        if labels.ndim == 2 and not self.multilabel_:
            labels = labels[:, 0]
        if labels.ndim > 2:
            raise InputError(f"y has shape {labels.shape}; expected one label, or a row, per set")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            k = int(np.argwhere(~np.isfinite(labels))[0][0])
            raise InputError(f"the label of set {k} is {labels[k]}; give it one or drop the set")
        if self.multilabel_:
            if not np.isin(labels, (0, 1)).all():
                raise InputError("several labels at once are rows of 0 and 1; y has other values")
            constant = np.flatnonzero((labels == labels[0]).all(axis=0))
            if len(constant):
                schema = None if table is None else table.schema
                label = constant[0] if schema is None else repr(schema.columns.target[constant[0]])
                raise InputError(
                    f"label {label} has one class only; nothing can be learned from it"
                )
            self.classes_ = np.arange(labels.shape[1])
            return labels.astype(np.float64)
        known = None if table is None else table.classes
        if known is None:
            self.classes_, numbers = _distinct(labels)
        else:
            self.classes_, numbers = np.array(known), labels  # numbered already
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class only ({self.classes_[0]}); nothing can be learned from it"
            )
        if self.classes_.dtype.kind == "f" and (self.classes_ % 1 != 0).any():
            raise InputError(
                f"y has fractions such as {self.classes_[self.classes_ % 1 != 0][0]}: these are "
                "amounts, not classes; use SetRegressor"
            )
        return numbers.astype(np.float64)

    def _comparable(self, labels: Array, sets: Sets) -> Array:
        """Labels as `classes_` has them: where one are text and the other numbers, by their names.

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

    def _class_weights(self, labels: Array) -> Array | None:
        if self.class_weight is None:
            return None
        try:
            weights: Array = compute_sample_weight(self.class_weight, labels)
        except ValueError as error:
            raise InputError(f"class_weight {self.class_weight!r}: {error}") from error
        return weights

    def _strata(self, sets: Sets) -> Array | None:
        return None if self.multilabel_ else sets.y

    # Using --------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Logits: the sums of the added values. One per set for two classes, else one per class."""
        raw = self._raw(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Array:
        """Sets x classes; each row sums to 1, except for several labels at once."""
        return self.link(self._raw(X))

    def link(self, raw: Array) -> Array:
        """Logits, sets x outputs, to probabilities, sets x classes."""
        if self.multilabel_:
            shares: Array = expit(raw)
        elif raw.shape[1] == 1:
            shares = np.concatenate([expit(-raw), expit(raw)], axis=1)
        else:
            shares = softmax(raw, axis=1)
        return shares

    def predict(self, X: Any) -> Array:
        """The likeliest class of every set, in the order of `set_ids`.

        Rows of 0 and 1 for several labels at once.
        """
        shares = self.predict_proba(X)
        if self.multilabel_:
            return (shares > 0.5).astype(np.int64)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of sets whose class (whose labels, all of them) is right; y as in `fit`."""
        return float(super().score(*self._labelled(X, y, sample_weight)))

    def output_names(self) -> list[str]:
        """The classes; of two the second."""
        if self.multilabel_:
            return super().output_names()
        return [str(c) for c in self.classes_[-self.spec_.outputs :]]

    def _labels(self) -> Any:
        return {"classes": np.asarray(self.classes_).tolist(), "multilabel": self.multilabel_}

    def _set_labels(self, labels: Any) -> None:
        self.classes_, self.multilabel_ = np.array(labels["classes"]), labels["multilabel"]


def _distinct(labels: Array) -> tuple[Array, Array]:
    """The classes, sorted, and which of them each label is."""
    try:
        classes, numbers = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise InputError(
            f"y mixes classes of several types ({', '.join(kinds)}); make all of them text or all "
            "numbers"
        ) from error
    return classes, numbers


def _are_text(values: Array) -> set[bool]:
    """Whether values are text; both where some are and others are not."""
    return {isinstance(value, str) for value in values.tolist()}
