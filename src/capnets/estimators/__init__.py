"""scikit-learn estimators on sets: X is a list of 2-D arrays, `Sets`, or a table."""

from capnets.estimators.classification import SetClassifier
from capnets.estimators.regression import SetRegressor

__all__ = ["SetClassifier", "SetRegressor"]
