"""Finding a learning rate: raise it step by step until the loss stops falling (Smith, 2017)."""

from __future__ import annotations

from copy import deepcopy

import torch

from capnets.batches import Batches
from capnets.models.base import SetModel
from capnets.training.losses import Loss
from capnets.training.recipe import Recipe

__all__ = ["find_rate"]


def find_rate(
    model: SetModel, data: Batches, loss: Loss, recipe: Recipe, *, seed: int, steps: int = 100
) -> float:
    """A highest learning rate for a one-cycle schedule: a third of where the smoothed loss is lowest.

    The network is tried out on a copy; it is not changed.
    """
    lowest, highest = 1e-5, 0.3
    trial = deepcopy(model).train()
    optimizer = torch.optim.Adam(trial.parameters())
    shuffle = torch.Generator().manual_seed(seed)
    smoothed, best, found = 0.0, float("inf"), lowest
    number = 0
    while number < steps:
        for batch in data.epoch(size=recipe.batch_size, shuffle=shuffle):
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
            smoothed = 0.9 * smoothed + 0.1 * float(value)
            corrected = smoothed / (1 - 0.9**number)
            if number > 5 and corrected < best:
                best, found = corrected, rate
            if number == steps or not corrected < 4 * best:
                return found / 3
    return found / 3
