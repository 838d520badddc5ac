"""Looking for good settings with Optuna: network, sizes and recipe, by cross-validation.

A study lives in a database (SQLite beside the result unless told otherwise), so it can be stopped,
killed, taken up again, and worked on by many processes or machines at once. Every trial is
cross-validated on whole sets; the sets that the final run is measured on are never seen by any.
"""

from capnets.tune.search import tune
from capnets.tune.space import Space

__all__ = ["Space", "tune"]
