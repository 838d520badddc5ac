"""Finding a learning rate: raise it step by step until the loss stops falling (Smith, 2017)."""

from __future__ import annotations

from copy import deepcopy

import torch

from capnets.models.base import SetModel
from capnets.nn.random import draw_from
from capnets.sets.batch import Batches
from capnets.training.losses import Loss
from capnets.training.optimizer import make_optimizer
from capnets.training.recipe import Recipe

__all__ = ["find_rate"]


def find_rate(
    model: SetModel, data: Batches, loss: Loss, recipe: Recipe, *, seed: int, steps: int = 100
) -> float:
    """A highest learning rate for a schedule: a third of where the smoothed loss is lowest.

    A copy of the network is tried out; the network itself and torch's random numbers stay as they
    are.
    """
    with draw_from(seed):
        return _lowest(deepcopy(model).train(), data, loss, recipe, seed=seed, steps=steps) / 3


def _lowest(
    trial: SetModel, data: Batches, loss: Loss, recipe: Recipe, *, seed: int, steps: int
) -> float:
    lowest, highest = 1e-5, 0.3
    optimizer = make_optimizer(trial, recipe, rate=lowest)
    shuffle = torch.Generator().manual_seed(seed)
    smoothed, best, found = 0.0, float("inf"), lowest
    number = 0
    while number < steps:
        for batch in data.epoch(size=recipe.batch_size, shuffle=shuffle):
            batch = batch.to(trial.unit.device)
            rate = lowest * (highest / lowest) ** (number / (steps - 1))
            for group in optimizer.param_groups:
                group["lr"] = rate
            assert batch.y is not None
            value = loss(
                trial(batch.x, batch.mask), batch.y, unit=trial.unit, weights=batch.weights
            )
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            number += 1
            smoothed = 0.9 * smoothed + 0.1 * float(value.detach())
            corrected = smoothed / (1 - 0.9**number)
            if number > 5 and corrected < best:
                best, found = corrected, rate
            if number == steps or not corrected < 4 * best:
                return found
    return found
