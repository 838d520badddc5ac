"""Networks and recipes by the amount of data: what to use when nobody says otherwise.

Few sets need their own care. What works was found on data sets that are not reported on, see
EXPERIMENTS.md: a small network, blanked features, and the mean of several networks over several
orders.
"""

from __future__ import annotations

from dataclasses import dataclass

from capnets.records import Record

__all__ = ["FEW_SETS", "PRESETS", "Preset", "preset_for"]

#: With fewer sets than this the preset `small` is used.
FEW_SETS = 5000


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
    "small": Preset("small", hidden=16, layers=1, dropout=0.2, members=5, orders=8),
    "large": Preset("fast", hidden=32, layers=3, dropout=0.0, members=1, orders=1),
}


def preset_for(sets: int) -> Preset:
    """The preset for so many training sets.

    >>> preset_for(92).members
    5
    """
    return PRESETS["small" if sets < FEW_SETS else "large"]
