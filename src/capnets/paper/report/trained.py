"""How ours were trained, in words: without it a lower error would pass for a better network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capnets.paper.jobs import TrainingJob
from capnets.paper.report.summary import Summary
from capnets.paper.scales import Scale
from capnets.training.recipe import RECIPES

__all__ = ["NOT_NETWORKS", "trained"]

# Beside the key of marks and colours.
NOT_NETWORKS = (
    "Better and worse are errors, not networks: recipe and features differ from the paper’s."
)
_SEEN = {
    "patches": "as features that are made without any label, from small patches (patches)",
    "none": "pixel by pixel",
}
# AdamW without weight decay is Adam.
_OPTIMIZERS = {"adamw": "Adam", "muon": "Muon"}


def trained(summary: Summary) -> list[str]:
    """What the networks saw, how they were trained, and what that means; empty: none was."""
    scales = {scale.name: scale for scale in _scales(summary)}
    if not scales:
        return []
    return [_seen(scales), _recipes(summary), *_rehearsal(summary), _meaning()]


def _scales(summary: Summary) -> Iterator[Scale]:
    """Those of tables that show a trained network."""
    for section in summary.sections:
        found = [shown.entry for shown in section.shared.shown if shown.ours is not None]
        if any(isinstance(job, TrainingJob) for entry in found for job in entry.jobs):
            yield section.shared.scale


def _seen(scales: Mapping[str, Scale]) -> str:
    features = " or ".join(dict.fromkeys(_SEEN[scale.embedding] for scale in scales.values()))
    sets = ", ".join(f"{scale.sets:,} (scale {name})" for name, scale in scales.items())
    return (
        f"Networks get images {features}; how the paper’s images became vectors is not said. "
        f"Training sets: {sets}, fewer where a table says so."
    )


def _recipes(summary: Summary) -> str:
    ours = "; ".join(
        f"recipe {recipe.name}, {recipe.runs} runs ({_settings(recipe.settings)})"
        for recipe in summary.recipes
    )
    return f"Ours: {ours}. The paper’s: {_settings(RECIPES['paper'].to_dict())}."


def _settings(settings: Mapping[str, Any]) -> str:
    return (
        f"epochs: {settings['epochs']}, sets in a batch: {settings['batch_size']:,}, "
        f"learning rate: {settings['learning_rate']}, {settings['schedule']}, "
        f"{_OPTIMIZERS[settings['optimizer']]}"
    )


def _rehearsal(summary: Summary) -> list[str]:
    # What a recipe did not have when it was recorded is not there.
    above = filter(None, (recipe.settings.get("replay") for recipe in summary.recipes))
    times = " or ".join(dict.fromkeys(f"{number:g}" for number in above))
    if not times:
        return []
    return [
        f"Rehearsal: sets with an error far above the mean (more than {times} times) are read "
        "again in the next epoch. Under the shared protocol this also learns wrong labels, which "
        "count like any others there; it favours networks that can tell single images apart; and "
        "on images never seen it costs some per cent up to a fifth (docs/findings/held-out.md)."
    ]


def _meaning() -> str:
    return (
        "So an error below the paper’s is one of this recipe and these features; it does not make "
        "the network a better one. Networks of one table were trained alike here, but for "
        "documents; those of different tables not always."
    )
