"""How good an estimator is on labelled sets."""

from __future__ import annotations

import numpy as np

from capnets import metrics
from capnets.estimators.averaging import mean_prediction
from capnets.estimators.base import SetEstimator
from capnets.estimators.classification import SetClassifier
from capnets.explain import Orders
from capnets.sets import Array, Sets

__all__ = ["quality"]


def quality(estimator: SetEstimator, sets: Sets) -> dict[str, float]:
    """Measures by name: of amounts as `capnets.metrics` has them, of classes accuracy and more.

    Parameters
    ----------
    estimator
        Fitted.
    sets
        With labels as numbers: amounts, or the numbers of classes.
    """
    orders = Orders.averaging(estimator.n_orders_)
    raw = mean_prediction(estimator.model_, sets, orders)
    y = np.asarray(sets.y)
    if isinstance(estimator, SetClassifier):
        return _classes(estimator, y, estimator.link(raw))
    return metrics.regression(y.reshape(raw.shape), raw)


def _classes(estimator: SetClassifier, y: Array, shares: Array) -> dict[str, float]:
    from sklearn.metrics import log_loss, roc_auc_score

    if estimator.multilabel_:
        same = (shares > 0.5) == (y > 0.5)
        return {"accuracy": float(same.mean()), "all_right": float(same.all(axis=1).mean())}
    known = np.arange(len(estimator.classes_))
    result = {
        "accuracy": float((shares.argmax(axis=1) == y).mean()),
        "log_loss": float(log_loss(y, shares, labels=known)),
    }
    if len(np.unique(y)) == len(known):  # otherwise the area under the curve is not defined
        two = len(known) == 2
        scores = shares[:, 1] if two else shares
        result["auc"] = float(roc_auc_score(y, scores, multi_class="ovr"))
    return result
