r"""C-Linear: every feature of an instance adds its amount, the smallest capacity network.

.. math:: v_i = w^\top x_i + a, \qquad Y = b + v_1 + … + v_n

with the aggregation `sum`; the others read the same numbers. It is the group-contribution model of
chemistry, and with the loss `cox` Cox's regression on sums of features. It has one weight per
feature, so that values are right where labels are few, if effects are close to linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from capnets.models.aggregations import AGGREGATIONS, BASELINES
from capnets.models.capacity import CapacityNetwork
from capnets.models.entry import Entry
from capnets.nn.encoders import mlp
from capnets.nn.independent import IndependentCell

if TYPE_CHECKING:
    from capnets.models.spec import ModelSpec

__all__ = ["ENTRY"]


def _make(spec: ModelSpec) -> CapacityNetwork:
    heads = AGGREGATIONS[spec.aggregation].heads
    network = CapacityNetwork(
        encoder=nn.Sequential(),
        cell=IndependentCell(spec.in_features),
        decoder=mlp(spec.in_features, heads * spec.outputs),
        activation=spec.activation,
        aggregation=spec.aggregation,
        baseline=spec.baseline,
    )
    network.in_features = spec.in_features  # the empty encoder does not declare it
    return network


ENTRY = Entry(
    "C-Linear",
    "every feature of an instance adds its amount",
    _make,
    aggregations=("sum", "mean", "mean+sum", "any"),  # not the last instance alone
    baselines=BASELINES,
)
