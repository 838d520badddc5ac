"""Initialise a network: weights, the scale of features, the mean label.

The recipe chooses what is done. The result is saved in the network; the data are not changed.
"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor, nn

from capnets.models.base import SetModel
from capnets.models.pool import PoolNetwork
from capnets.nn.cells import Cell
from capnets.nn.encoders import Standardize
from capnets.nn.monotone import Bend, MonotoneLinear
from capnets.nn.projection import Project
from capnets.nn.trees import Trees
from capnets.sets.batch import Batches
from capnets.training.ahead import pooled
from capnets.training.losses import Loss
from capnets.training.recipe import Recipe

__all__ = ["begin", "draw_weights"]


def begin(model: SetModel, data: Batches, recipe: Recipe, loss: Loss, *, seed: int) -> None:
    """Prepare a network for its first step."""
    if recipe.start == "wide":
        draw_weights(model, torch.Generator().manual_seed(seed))
    if isinstance(model.inputs, Standardize):
        model.inputs.learn(*_moments(data))
    if isinstance(model.inputs, Project):
        model.inputs.learn(data.gather(torch.from_numpy(np.unique(data.index.numpy()))), seed=seed)
    if model.covariate_baseline is not None:
        assert data.covariates is not None
        model.covariate_baseline.learn(data.covariates)
        if recipe.start == "wide":
            model.covariate_baseline.start()
    size = float(data.sizes.mean())
    unit = torch.ones(model.outputs)
    if recipe.scale and loss.scaled:
        assert data.y is not None
        deviation = data.y.std(0, correction=0)
        unit = torch.where(deviation > 0, deviation / size**0.5, 1.0)
    if isinstance(model, PoolNetwork):
        _begin_pool(model, data, loss, unit=unit, seed=seed)
    if recipe.scale:
        assert data.y is not None
        model.start(unit=unit, label=loss.level(data.y, model.outputs), size=size)


@torch.no_grad()
def draw_weights(model: SetModel, generator: torch.Generator) -> None:
    """Draw weights that preserve the scale of the signal through all layers.

    With torch's defaults it shrinks to a third in every layer with ReLU. Behind an encoder, a cell
    and a decoder little of an instance is left, and the first thousands of steps recover it.
    Layers before a ReLU follow He et al. (2015); cells define their own initialisation.
    """
    for module in model.modules():
        if isinstance(module, nn.Sequential):
            layers = list(module)
            for layer, after in zip_longest(layers, layers[1:]):
                if isinstance(layer, Bend | MonotoneLinear):
                    layer.draw_weights(generator)
                elif isinstance(layer, nn.Linear):
                    gain = 2**0.5 if isinstance(after, nn.ReLU) else 1.0
                    deviation = gain * layer.in_features**-0.5
                    nn.init.normal_(layer.weight, std=deviation, generator=generator)
                    if layer.bias is not None:
                        nn.init.zeros_(layer.bias)
        elif isinstance(module, Cell):
            module.draw_weights(generator)


def _moments(data: Batches, *, numbers: int = 2**20, cached: int = 2**16) -> tuple[Tensor, Tensor]:
    """Return the mean and standard deviation of the features of all instances in sets.

    Instances are read in blocks of `numbers`. Sums in float64 run over blocks that stay in the
    processor's cache: large ones take many times as long, and leave holes in the heap.
    """
    used = np.zeros(len(data.instances), dtype=bool)
    used[data.index.numpy()] = True
    rows = torch.from_numpy(np.flatnonzero(used))
    width = data.instances.shape[1]
    total = torch.zeros(width, dtype=torch.float64)
    squares = torch.zeros_like(total)
    for part in torch.split(rows, max(1, numbers // width)):
        for x in torch.split(data.gather(part), max(1, cached // width)):
            wide = x.double()
            total += wide.sum(0)
            squares += wide.square_().sum(0)
    count = max(1, len(rows))
    mean = total / count
    moments = mean.float(), (squares / count - mean.square()).clamp_min(0).sqrt().float()
    if data.covariates is None:
        return moments
    known = data.covariates.double()
    mean, deviation = known.mean(0).float(), known.std(0, correction=0).float()
    return torch.cat([moments[0], mean]), torch.cat([moments[1], deviation])


@torch.no_grad()
def _begin_pool(model: PoolNetwork, data: Batches, loss: Loss, *, unit: Tensor, seed: int) -> None:
    """Scale the statistics of sets, and grow trees if the decoder has them."""
    statistics, weights = model.statistics, data.weights
    found = model.scaled(pooled(model, data))
    statistics.learn(found.double().mean(0).float(), found.double().std(0, correction=0).float())
    if isinstance(trees := model.decoder[0], Trees) and not loss.joint:
        assert data.y is not None
        numbered = data.y.shape[1] < model.outputs  # classes
        y = nn.functional.one_hot(data.y[:, 0].long(), model.outputs) if numbered else data.y / unit
        rows = (found - statistics.mean) * statistics.scale
        trees.grow(rows, y, classes=loss.logits, weights=weights, seed=seed)
        model.final.weight.copy_(torch.eye(model.outputs))
