"""Compute once what training would compute in every step.

The parts of a network in front of its first weights give the same numbers in every epoch: principal
components of an instance, and the pooled statistics of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from capnets.models.base import SetModel
from capnets.models.pool import PoolNetwork
from capnets.nn.projection import Project
from capnets.sets import Sets
from capnets.sets.batch import Batches

__all__ = ["Ahead", "behind_projection", "components", "pooled", "read_ahead"]

Predict = Callable[[Tensor, Tensor | None], Tensor]
#: Sets that are pooled at once; instances that are projected at once.
SETS, ROWS = 64, 4096


class Ahead:
    """Training sets behind the fixed part of a network.

    Parameters
    ----------
    data
        What is read instead of the training sets.
    view
        Returns the rest of a network, which shares its weights.
    """

    def __init__(self, data: Batches, view: Callable[[SetModel], Predict]) -> None:
        self.data, self.view = data, view


def read_ahead(model: SetModel, data: Batches) -> Ahead | None:
    """Return the training sets behind the fixed part of a network; None if it has none."""
    if data.covariates is not None or data.streamed:
        return None
    if isinstance(model, PoolNetwork):
        return Ahead(Batches(_one_row(data.sets, pooled(model, data))), _of_statistics)
    if isinstance(model.inputs, Project):
        found = replace(data.sets, instances=components(model.inputs, data), feature_names=None)
        return Ahead(Batches(found), behind_projection)
    return None


@torch.no_grad()
def pooled(model: PoolNetwork, data: Batches) -> Tensor:
    """Return the statistics of every set, in the order of the sets."""
    was, parts = model.training, []
    model.eval()
    for chosen in np.array_split(np.arange(len(data.sets)), -(-len(data.sets) // SETS)):
        batch = data.take(chosen)
        parts.append(model.pooled(model.read(batch.x, batch.mask), batch.mask))
    model.train(was)
    return torch.cat(parts)


@torch.no_grad()
def components(inputs: nn.Module, data: Batches) -> np.ndarray:
    """Return the components of every instance of the sets; 0 for others of the instance table."""
    assert isinstance(inputs, Project)
    found = np.zeros((len(data.instances), len(inputs.components)), dtype=np.float32)
    for part in torch.split(torch.unique(data.index), ROWS):
        rows = data.gather(part).to(inputs.mean)
        found[part.numpy()] = inputs.project(rows).cpu().numpy()
    return found


def _one_row(sets: Sets, rows: Tensor) -> Sets:
    """Return sets whose only instance is a row."""
    count = len(sets)
    return Sets(rows.numpy(), np.arange(count), np.arange(count + 1), sets.y, weights=sets.weights)


def _of_statistics(model: SetModel) -> Predict:
    assert isinstance(model, PoolNetwork)
    return lambda x, mask: model.unit * model.predict_pooled(x[:, 0])


def behind_projection(model: SetModel) -> SetModel:
    """Return a network that reads components instead of features and shares all weights."""
    assert isinstance(model.inputs, Project)
    view = copy(model)
    view._modules = dict(model._modules) | {"inputs": model.inputs.dropout}
    return view
