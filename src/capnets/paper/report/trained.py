"""Describe how networks were trained, so that a lower error does not pass for a better network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capnets.paper.report.summary import Part, Recipe, Summary
from capnets.paper.scales import PAPER_RECIPE

__all__ = ["paper_recipe", "settings", "trained"]

_FEATURES = {
    "patches": "features computed from small image patches without labels (patches)",
    "none": "pixels",
}
# AdamW without weight decay is Adam.
_OPTIMIZERS = {"adamw": "Adam", "muon": "Muon"}


def trained(part: Part) -> str:
    """Describe features and numbers of training sets."""
    scales = {section.shared.scale.name: section.shared.scale for section in part.sections}
    if not scales:
        return ""
    features = " or ".join(dict.fromkeys(_FEATURES[s.embedding] for s in scales.values()))
    sets = ", ".join(f"{scale.sets:,} (scale {name})" for name, scale in scales.items())
    return (
        f"Input: {features}; the paper does not say how its images became vectors. "
        f"Training sets: {sets}, fewer where a table says so."
    )


def paper_recipe() -> str:
    """State what the paper prints about training and what is inferred."""
    return (
        "Printed in the paper: Adam, learning rate 0.001, batches of 1,000 sets, mean squared "
        "error, 32 hidden dimensions, three layers. Inferred: at most 500 epochs (one figure ends "
        "there), a constant rate, the weights of the best validation epoch, and a stop after 50 "
        "epochs without a better one. At full scale training here ends after 200 epochs; records "
        "hold the whole validation curve."
    )


def settings(recipe: Recipe) -> str:
    """Describe a recipe in one line."""
    values: Mapping[str, Any] = recipe.settings
    replay = values.get("replay")
    return (
        f"{recipe.name} (runs: {recipe.runs}): {_OPTIMIZERS[values['optimizer']]}, "
        f"learning rate {values['learning_rate']} ({values['schedule']}), "
        f"batches of {values['batch_size']:,}, {values['epochs']} epochs"
        + (f", replay of sets with more than {replay:g} times the mean error" if replay else "")
    )


def recipes(summary: Summary, *, paper: bool) -> list[str]:
    """Describe the recipes of a part."""
    found = [recipe for recipe in summary.recipes if (recipe.name == PAPER_RECIPE) == paper]
    return [settings(recipe) for recipe in found]
