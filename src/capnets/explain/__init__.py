"""Explanations: what each instance is worth to a prediction, in the unit of the label.

make
    `added_values` over orders, `shapley_values`, `interactions`
hold
    `Explanation`, which all of them return, with pages and figures
judge
    against truth and by removal: `judge`, `judging_table`; `sensitivity`, `diagnose`, `context`
use
    `select`, `StreamSelection`, `predict` averaged over orders
"""

from capnets.explain.added import added_values, predict
from capnets.explain.bridges import game, presence_function
from capnets.explain.diagnostics import Context, Diagnostics, context, diagnose
from capnets.explain.evaluation import (
    Curve,
    completeness_gap,
    curve,
    error,
    judge,
    judging_table,
    rank_agreement,
)
from capnets.explain.explanation import Explanation
from capnets.explain.interaction import Interactions, interactions
from capnets.explain.order_sensitivity import Sensitivity, sensitivity
from capnets.explain.selection import Selection, select
from capnets.explain.shapley import shapley_values
from capnets.explain.stream_selection import StreamSelection
from capnets.sets.orders import Orders

__all__ = [
    "Context",
    "Curve",
    "Diagnostics",
    "Explanation",
    "Interactions",
    "Orders",
    "Selection",
    "Sensitivity",
    "StreamSelection",
    "added_values",
    "completeness_gap",
    "context",
    "curve",
    "diagnose",
    "error",
    "game",
    "interactions",
    "judge",
    "judging_table",
    "predict",
    "presence_function",
    "rank_agreement",
    "select",
    "sensitivity",
    "shapley_values",
]
