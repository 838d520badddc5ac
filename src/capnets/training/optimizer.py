"""What changes weights, as a recipe names it."""

from __future__ import annotations

import torch
from torch import nn

from capnets.training.adamw import AdamW
from capnets.training.muon import Muon
from capnets.training.recipe import Recipe

__all__ = ["make_optimizer"]


def make_optimizer(model: nn.Module, recipe: Recipe, *, rate: float) -> torch.optim.Optimizer:
    """The optimiser of a recipe for all parameters of a network."""
    if recipe.optimizer == "muon":
        return Muon(model, lr=rate, weight_decay=recipe.weight_decay)
    return AdamW(model.parameters(), lr=rate, weight_decay=recipe.weight_decay)
