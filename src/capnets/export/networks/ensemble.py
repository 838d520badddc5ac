"""Ensembles: the mean of their members; their states are concatenated."""

from __future__ import annotations

import numpy as np

from capnets.export.graph import Edge, Graph
from capnets.export.networks.base import (
    Memory,
    added_values,
    advance,
    from_covariates,
    memory,
    prediction,
    predicts_apart,
)
from capnets.export.rows import Rows
from capnets.models.ensemble import Ensemble


@prediction.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows) -> Edge:
    return g.add("Mean", *(prediction(member, g, x) for member in model.each))


@added_values.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows) -> Edge:
    return g.add("Mean", *(added_values(member, g, x) for member in model.each))


@advance.register(Ensemble)
def _(model: Ensemble, g: Graph, x: Rows, state: Edge | None) -> tuple[Edge, Edge]:
    assert state is not None  # whole sets are read member by member
    own, together = [memory(member) for member in model.each], memory(model).dtype
    sizes = g.integers(*(m.features for m in own))
    parts = g.add_many("Split", state, sizes, outputs=len(own), axis=1)
    values, after = [], []
    for member, (_, dtype), part in zip(model.each, own, parts, strict=True):
        before = part if dtype == together else g.cast(part, dtype)
        some, then = advance(member, g, x, before)
        values.append(some)
        after.append(then if dtype == together else g.cast(then, together))
    return g.add("Mean", *values), g.add("Concat", *after, axis=1)


@memory.register(Ensemble)
def _(model: Ensemble) -> Memory:
    own = [memory(member) for member in model.each]
    return Memory(sum(m.features for m in own), np.result_type(*(m.dtype for m in own)).type)


@from_covariates.register(Ensemble)
def _(model: Ensemble, g: Graph, covariates: Edge) -> Edge:
    return g.add("Mean", *(from_covariates(member, g, covariates) for member in model.each))


@predicts_apart.register(Ensemble)
def _(model: Ensemble) -> bool:
    return any(predicts_apart(member) for member in model.each)
