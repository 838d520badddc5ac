"""Default networks and recipes by the amount of data.

Few sets call for a small network, an ensemble averaged over several orders, and dropout of half of
the features if there are fewer than two sets per feature. Tens of sets need more epochs; a thousand
allow a larger network. EXPERIMENTS.md describes how the presets were found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from capnets.records import Record

__all__ = ["BLANKED", "FEW_SETS", "PRESETS", "SOME_SETS", "VERY_FEW_SETS", "Preset", "preset_for"]

#: Upper bounds on the number of sets for the presets tiny, small and medium; large above.
VERY_FEW_SETS, FEW_SETS, SOME_SETS = 100, 1000, 5000
#: Dropout of features where sets are few, and fewer than two per feature.
BLANKED = 0.5


@dataclass(frozen=True)
class Preset(Record):
    """Settings of a network, its recipe and its predictions.

    Parameters
    ----------
    recipe
        A name of `capnets.training.recipe.RECIPES`.
    hidden, layers, dropout, members
        As in `ModelSpec`.
    orders
        Number of random orders that predictions are averaged over; 1 uses the order given.
    epochs
        Number of epochs, if not the recipe's.
    """

    recipe: str
    hidden: int
    layers: int
    dropout: float
    members: int
    orders: int
    epochs: int | None = None


PRESETS: dict[str, Preset] = {
    # More epochs than `small`, because an epoch is only a step or two.
    "tiny": Preset("small", hidden=16, layers=1, dropout=0.0, members=3, orders=8, epochs=120),
    "small": Preset("small", hidden=16, layers=1, dropout=0.0, members=5, orders=8),
    "medium": Preset("medium", hidden=32, layers=2, dropout=0.0, members=3, orders=8),
    "large": Preset("large", hidden=32, layers=3, dropout=0.0, members=1, orders=1),
}


def preset_for(sets: int, features: int) -> Preset:
    """Return the preset for a number of training sets and of features per instance.

    >>> preset_for(92, 166).dropout, preset_for(188, 44).dropout
    (0.5, 0.0)
    >>> preset_for(3000, 52).recipe
    'medium'
    """
    if sets >= SOME_SETS:
        return PRESETS["large"]
    if sets >= FEW_SETS:
        return PRESETS["medium"]
    preset = PRESETS["small" if sets >= VERY_FEW_SETS else "tiny"]
    return replace(preset, dropout=BLANKED) if sets < 2 * features else preset
