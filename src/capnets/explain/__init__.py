"""Explain predictions: what each instance adds, in the unit of the label.

compute
    `explain` (added values, Shapley values), `interactions`, `explain_global`
inspect
    `Explanation` with pages and figures; `diagnose` for the learned set function
use
    `select` and `StreamSelection` choose instances

`capnets.explain.evaluation` measures explanations, `capnets.explain.bridges` connects other
libraries.
"""

from capnets.explain.diagnostics import diagnose, leave_one_out
from capnets.explain.explanation import Explanation
from capnets.explain.global_explanation import GlobalExplanation, explain_global
from capnets.explain.interaction import Interactions, interactions
from capnets.explain.maps import ValueMap, value_maps
from capnets.explain.methods import explain
from capnets.explain.selection import Selection, select
from capnets.explain.shapley import shapley_values
from capnets.explain.stream_selection import StreamSelection
from capnets.sets.orders import Orders

__all__ = [
    "Explanation",
    "GlobalExplanation",
    "Interactions",
    "Orders",
    "Selection",
    "StreamSelection",
    "ValueMap",
    "diagnose",
    "explain",
    "explain_global",
    "interactions",
    "leave_one_out",
    "select",
    "shapley_values",
    "value_maps",
]
