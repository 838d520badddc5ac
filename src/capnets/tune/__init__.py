"""Search for good settings with Optuna: network, sizes and recipe, by cross-validation.

A study is stored in a database (by default SQLite beside the result), so it can be interrupted and
resumed, and several processes or machines can work on it. Every trial is cross-validated on whole
sets; no trial sees the test sets of the final run.
"""

from capnets.tune.search import tune
from capnets.tune.space import Space

__all__ = ["Space", "tune"]
