"""Networks and recipes by the amount of data: what to use when nobody says otherwise.

Few sets need their own care; what works, and how it was found, is in EXPERIMENTS.md: a small
network, the mean of several networks over several orders, and, where there are fewer than two sets
per feature, half of the features blanked at random in training. A thousand sets bear a larger
network.
"""

from __future__ import annotations

from dataclasses import dataclass

from capnets.records import Record

__all__ = ["FEW_SETS", "PRESETS", "SOME_SETS", "Preset", "preset_for"]

#: With fewer sets than this a network for few sets is used,
FEW_SETS = 1000
#: and from there up to this one for some.
SOME_SETS = 5000


@dataclass(frozen=True)
class Preset(Record):
    """A network and how it is trained and used.

    Parameters
    ----------
    recipe
        A name of `capnets.training.recipe.RECIPES`.
    hidden, layers, dropout, members
        As in `ModelSpec`.
    orders
        Random orders that predictions are averaged over; 1 reads instances as they come.
    """

    recipe: str
    hidden: int
    layers: int
    dropout: float
    members: int
    orders: int


PRESETS: dict[str, Preset] = {
    "small": Preset("small", hidden=16, layers=1, dropout=0.0, members=5, orders=8),
    "small-and-wide": Preset("small", hidden=16, layers=1, dropout=0.5, members=5, orders=8),
    "medium": Preset("medium", hidden=32, layers=2, dropout=0.0, members=3, orders=8),
    "large": Preset("fast", hidden=32, layers=3, dropout=0.0, members=1, orders=1),
}


def preset_for(sets: int, features: int) -> Preset:
    """The preset for so many training sets whose instances have so many features.

    >>> preset_for(92, 166).dropout, preset_for(188, 44).dropout
    (0.5, 0.0)
    >>> preset_for(3000, 52).recipe
    'medium'
    """
    if sets >= FEW_SETS:
        return PRESETS["medium" if sets < SOME_SETS else "large"]
    return PRESETS["small-and-wide" if sets < 2 * features else "small"]
