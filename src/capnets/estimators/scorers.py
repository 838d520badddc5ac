"""Scorers of scikit-learn for tables, in which y has one entry per row or is a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.metrics import check_scoring, get_scorer
from sklearn.pipeline import Pipeline

from capnets.errors import InputError
from capnets.estimators.base import SetEstimator

__all__ = ["SetScorer", "set_scorer"]


class SetScorer:
    """Compare one prediction per set with one label per set.

    A scorer of scikit-learn compares predictions with y entry by entry. In a table y has one entry
    per row, or is a column of X, while there is one prediction per set. This scorer takes the label
    of every set first. It is a class so that worker processes can receive it.

    Parameters
    ----------
    scoring
        A name such as `roc_auc`, or a scorer of scikit-learn.
    """

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self.scorer = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of a fitted estimator, or of a pipeline that ends in one."""
        if isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        if not isinstance(estimator, SetEstimator):
            raise InputError(
                f"set_scorer compares predictions of SetRegressor, SetClassifier or SetSurvival, "
                f"not of {type(estimator).__name__}"
            )
        sets, labels, weights = estimator._labelled(X, y, sample_weight)
        given = {} if weights is None else {"sample_weight": weights}
        scorer = check_scoring(estimator, self.scorer)
        return float(scorer(estimator, sets, labels, **given))

    def __repr__(self) -> str:
        return f"set_scorer({self.scoring!r})"


def set_scorer(scoring: str | Callable[..., float]) -> SetScorer:
    """Return a scorer by name that takes tables, for `scoring=` in searches and validation.

    Lists and `Sets` have one entry of y per set; for them plain names suffice.

    >>> set_scorer("roc_auc")
    set_scorer('roc_auc')
    """
    return SetScorer(scoring)
