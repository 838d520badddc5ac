"""scikit-learn estimators on sets: X is a list of 2-D arrays, `Sets`, or a table."""

from capnets.estimators.classification import SetClassifier
from capnets.estimators.features import SetFeatures
from capnets.estimators.regression import SetRegressor
from capnets.estimators.scorers import set_scorer
from capnets.estimators.set_frame import SetFrame
from capnets.estimators.splitting import GroupSetKFold, SetKFold, StratifiedSetKFold
from capnets.estimators.survival import SetSurvival

__all__ = [
    "GroupSetKFold",
    "SetClassifier",
    "SetFeatures",
    "SetFrame",
    "SetKFold",
    "SetRegressor",
    "SetSurvival",
    "StratifiedSetKFold",
    "set_scorer",
]
