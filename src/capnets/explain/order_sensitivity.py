"""Sensitivity to order: how far single orders are from the mean over orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capnets.errors import InputError
from capnets.explain.added import added_values
from capnets.explain.value import CHUNK
from capnets.models.base import SetModel
from capnets.sets import Array, Sets
from capnets.sets.orders import Orders

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sensitivity", "sensitivity"]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How much the order of the instances matters.

    Parameters
    ----------
    predictions
        Standard deviation over orders of the prediction of each set.
    values
        The same for the added value of each instance.
    scale
        Standard deviation of the mean predictions over sets: what the spread is to be held against.
    orders
        The orders compared.
    """

    predictions: Array
    values: Array
    scale: float
    orders: Orders

    def to_frame(self) -> pd.DataFrame:
        """One row: mean and largest spread over the sets, and the mean relative to `scale`."""
        import pandas as pd

        mean = float(self.predictions.mean())
        return pd.DataFrame(
            {
                "prediction, mean spread": [mean],
                "prediction, largest": [float(self.predictions.max())],
                "relative to the spread over sets": [mean / self.scale if self.scale else np.nan],
                "value, mean spread": [float(self.values.mean())],
                "value, largest": [float(self.values.max())],
            }
        )


def sensitivity(
    model: SetModel,
    sets: Sets,
    *,
    orders: Orders | int = 32,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Sensitivity:
    """The spread over orders of every prediction and of every added value."""
    found = added_values(model, sets, orders=orders, seed=seed, output=output, chunk=chunk)
    if found.prediction_spreads is None or found.spreads is None:
        raise InputError("at least 2 orders are needed to compare")
    return Sensitivity(
        found.prediction_spreads, found.spreads, float(found.predictions.std()), found.orders
    )
