"""Build the optimizer named by a recipe."""

from __future__ import annotations

import torch
from torch import nn

from capnets.training.adamw import AdamW
from capnets.training.muon import Muon
from capnets.training.recipe import Recipe

__all__ = ["make_optimizer"]


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe over all parameters of a network."""
    rate = recipe.learning_rate
    if recipe.optimizer == "muon":
        return Muon(model, lr=rate, weight_decay=recipe.weight_decay)
    return AdamW(model.parameters(), lr=rate, weight_decay=recipe.weight_decay)
