"""Meaning of labels: amounts, counts, classes, several labels at once, or times until an event.

Added values of classes are logits, those of counts are logarithms. They are summed first, and the
link (logistic, softmax or exponential) is applied to the sum, so they stay additive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import expit, log_softmax, softmax

from capnets import metrics
from capnets.errors import InputError, unknown
from capnets.sets import Array
from capnets.training.survival import concordance

__all__ = ["KINDS", "Target"]

KINDS = {
    "amount": "numbers, predicted with a squared loss",
    "count": "numbers of at least 0, predicted with a Poisson loss",
    "class": "one class per set",
    "labels": "several labels per set, each present or absent",
    "survival": "a time, and whether the event happened then (1) or the set was censored (0)",
}


@dataclass(frozen=True)
class Target:
    """Describe the labels of a problem.

    Parameters
    ----------
    kind
        `amount`, `count`, `class`, `labels` or `survival`.
    outputs
        Number of network outputs: one per amount, label or class; two classes share one.
    classes
        Classes in rising order, for the kind `class`.
    names
        Target columns, where a table names them.
    flat
        Whether labels are one number per set rather than a row.
    """

    kind: str = "amount"
    outputs: int = 1
    classes: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    flat: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of target", self.kind, KINDS)

    @classmethod
    def of_classes(cls, classes: Any, names: tuple[str, ...] = ()) -> Target:
        """Return the target for one of several classes."""
        classes = tuple(np.asarray(classes).tolist())
        return cls("class", 1 if len(classes) == 2 else len(classes), classes, names)

    @property
    def classifies(self) -> bool:
        """Return whether predictions are classes or labels, not amounts."""
        return self.kind in ("class", "labels")

    @property
    def loss(self) -> str:
        """Return the name of the training loss."""
        if not self.classifies:
            return {"survival": "cox", "count": "poisson"}.get(self.kind, "squared")
        return "logistic" if self.kind == "labels" or len(self.classes) == 2 else "softmax"

    @property
    def output_names(self) -> list[str]:
        """Return the name of each output: a target column, or a class (of two, the second)."""
        if self.kind == "class":
            return [str(c) for c in self.classes[-self.outputs :]]
        if self.kind == "survival":
            return ["log-hazard"]
        if len(self.names) == self.outputs:
            return list(self.names)
        return [str(k) for k in range(self.outputs)]

    def probabilities(self, raw: Array) -> Array:
        """Map logits (sets x outputs) to probabilities (sets x classes, or sets x labels)."""
        if self.kind == "labels":
            shares: Array = expit(raw)
        elif raw.shape[1] == 1:
            shares = np.concatenate([expit(-raw), expit(raw)], axis=1)
        else:
            shares = softmax(raw, axis=1)
        return shares

    def decide(self, raw: Array) -> Array:
        """Map network outputs to predictions: numbers, the likeliest class, or rows of 0 and 1."""
        if self.kind == "count":
            raw = np.exp(raw)
        if not self.classifies:
            return raw[:, 0] if self.flat else raw
        shares = self.probabilities(raw)
        if self.kind == "labels":
            return (shares > 0.5).astype(np.int64)
        chosen: Array = np.array(self.classes)[shares.argmax(axis=1)]
        return chosen

    def strata(self, y: Array | None) -> Array | None:
        """Return the classes to stratify splits by; None if there are none."""
        if self.kind == "survival" and y is not None:
            return y[:, 1]
        return y if self.kind == "class" else None

    def memberships(self, y: Array) -> Array:
        """Return sets x (classes, or presence and absence of every label), as 0 and 1."""
        if self.kind in ("amount", "count"):
            return np.zeros((len(y), 0), dtype=np.int64)
        if self.kind == "survival":
            return np.stack([y[:, 1] > 0, y[:, 1] <= 0], axis=1).astype(np.int64)
        if self.kind == "labels":
            return np.concatenate([y > 0.5, y <= 0.5], axis=1).astype(np.int64)
        members: Array = y.reshape(-1, 1) == np.arange(len(self.classes))
        return members.astype(np.int64)

    def measure(self, y: Any, raw: Array) -> dict[str, float]:
        """Measure network outputs against labels given as numbers."""
        y = np.asarray(y)
        if self.kind == "amount":
            return metrics.regression(y.reshape(raw.shape), raw)
        if self.kind == "count":
            return metrics.regression(y.reshape(raw.shape), np.exp(raw))
        if self.kind == "survival":
            return {"concordance": concordance(*map(torch.as_tensor, (raw[:, 0], *y.T)))}
        shares = self.probabilities(raw)
        if self.kind == "labels":
            same = (shares > 0.5) == (y > 0.5)
            return {
                "accuracy": float(same.mean()),
                "all_right": float(same.all(axis=1).mean()),
                "log_loss": self.log_loss(y, raw),
            }
        return self._measure_classes(y.reshape(len(raw)), shares)

    def log_loss(self, y: Array, raw: Array) -> float:
        """Return the mean negative log-likelihood of labels, in nats (per label, if several)."""
        if self.kind == "labels" or raw.shape[1] == 1:
            signs = 2 * (y.reshape(raw.shape) > 0.5) - 1
            return float(np.logaddexp(0, -signs * raw).mean())
        logits = log_softmax(raw, axis=1)
        return float(-logits[np.arange(len(raw)), y.reshape(len(raw)).astype(np.int64)].mean())

    def _measure_classes(self, y: Array, shares: Array) -> dict[str, float]:
        from sklearn.metrics import log_loss, roc_auc_score

        known = np.arange(len(self.classes))
        result = {
            "accuracy": float((shares.argmax(axis=1) == y).mean()),
            "log_loss": float(log_loss(y, shares, labels=known)),
        }
        if len(np.unique(y)) == len(known):  # otherwise the area under the curve is undefined
            scores = shares[:, 1] if len(known) == 2 else shares
            result["auc"] = float(roc_auc_score(y, scores, multi_class="ovr"))
        return result

    @staticmethod
    def loss_of(measured: dict[str, float]) -> float:
        """Return the number to minimize: log loss, squared error, or the share of errors."""
        for name in ("log_loss", "mse"):
            if name in measured:
                return measured[name]
        return 1 - measured["concordance" if "concordance" in measured else "accuracy"]

    # Recorded form: the keys `estimator` and `labels` of a run on a table ------------------------

    def to_data(self) -> dict[str, Any]:
        """Return the target as it is recorded with a run."""
        if self.kind == "amount":
            return {"estimator": "SetRegressor", "labels": {"flat": self.flat}}
        if self.kind == "count":
            return {"estimator": "SetRegressor", "labels": {"flat": self.flat, "counts": True}}
        if self.kind == "survival":
            return {"estimator": "SetSurvival", "labels": {"flat": True}}
        classes = list(self.classes) if self.kind == "class" else list(range(self.outputs))
        labels = {"classes": classes, "multilabel": self.kind == "labels"}
        return {"estimator": "SetClassifier", "labels": labels}

    @classmethod
    def from_data(cls, data: dict[str, Any], outputs: int, names: tuple[str, ...] = ()) -> Target:
        """Read what `to_data` recorded; a run on a task predicts an amount."""
        if "estimator" not in data:
            return cls(outputs=outputs)
        try:
            labels = data["labels"]
            if data["estimator"] == "SetRegressor":
                kind = "count" if labels.get("counts") else "amount"
                return cls(kind, outputs, names=names, flat=bool(labels["flat"]))
            if data["estimator"] == "SetSurvival":
                return cls("survival", outputs, names=names)
            if labels["multilabel"]:
                return cls("labels", outputs, names=names, flat=False)
            return cls("class", outputs, tuple(labels["classes"]), names)
        except (KeyError, TypeError) as error:
            raise InputError(f"the recorded labels of the run are damaged ({error!r})") from error
