"""Calibration, voting and stacking of scikit-learn around set estimators."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from capnets.estimators import SetClassifier, SetFeatures, SetRegressor
from ragged import QUICK, amounts, classes, ragged

FAST = QUICK | {"epochs": 2}
X = ragged(40)
LABELS, AMOUNTS = classes(X), amounts(X)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(method):
    model = CalibratedClassifierCV(SetClassifier(**FAST), cv=2, method=method).fit(X, LABELS)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert set(model.predict(X)) <= set(LABELS)
    assert len(model.calibrated_classifiers_) == 2


def test_calibration_of_a_fitted_network():
    """Sigmoid calibration is monotone, so it keeps the order of the sets."""
    fitted = SetClassifier(**FAST).fit(X, LABELS)
    model = CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X, LABELS)
    before, after = (m.predict_proba(X)[:, 1] for m in (fitted, model))
    order = np.argsort(before)
    steps = np.diff(after[order])
    assert (steps >= -1e-9).all() or (steps <= 1e-9).all()


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_voting_of_classifiers(voting):
    members = [(m, SetClassifier(**FAST | {"model": m})) for m in ("c-gru", "c-deepset")]
    model = VotingClassifier(members, voting=voting).fit(X, LABELS)
    assert set(model.predict(X)) <= set(LABELS)
    if voting == "soft":
        single = [member.predict_proba(X) for member in model.estimators_]
        np.testing.assert_allclose(model.predict_proba(X), np.mean(single, axis=0))


def test_voting_of_regressors_with_a_pipeline_of_pooled_features():
    members = [
        ("network", SetRegressor(**FAST)),
        ("pooled", make_pipeline(SetFeatures(), Ridge())),
    ]
    model = VotingRegressor(members).fit(X, AMOUNTS)
    single = [member.predict(X) for member in model.estimators_]
    np.testing.assert_allclose(model.predict(X), np.mean(single, axis=0), rtol=1e-6)
