"""Read a table as a sequence of sets, which scikit-learn divides by set and not by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.estimators.splitting import per_set
from capnets.sets import Array

__all__ = ["SetFrame"]


class SetFrame:
    """A frame whose entries are sets: its length is their number, and an index chooses sets.

    scikit-learn compares predictions with y entry by entry, and cuts X by its entries. A frame has
    one row per instance, so plain scorers, `cv=5`, `cross_val_predict`, `train_test_split`,
    calibration and pipelines with `SetFeatures` need one entry per set. Estimators read a
    `SetFrame` like the frame in it, also within folds: categories and imputed values are learned
    from the training sets only.

    Parameters
    ----------
    frame
        A frame of pandas or polars, or an Arrow table.
    set
        The set column. Sets are in the order of their first rows.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"basket": [7, 3, 7, 5], "price": [1, 2, 3, 4], "y": [4, 2, 4, 4]})
    >>> X = SetFrame(frame, set="basket")
    >>> len(X), X.per_set("y").tolist(), X[[2, 0]].frame.basket.tolist()
    (3, [4, 2, 4], [5, 7, 7])
    """

    def __init__(self, frame: Any, *, set: str) -> None:
        import narwhals as nw
        import pandas as pd

        try:
            self._rows: Any = nw.from_native(frame, eager_only=True)
        except TypeError as error:
            raise InputError(
                f"the frame is a {type(frame).__name__}; give one of pandas or polars, or an Arrow "
                "table"
            ) from error
        if set not in self._rows.columns:
            raise unknown("set column", set, self._rows.columns)
        self.frame, self.set = frame, set
        owner, names = pd.factorize(self._rows[set].to_numpy())
        if (owner < 0).any():
            raise InputError(f"column {set!r} is empty in row {int(np.argmax(owner < 0))}")
        self._owner, self.ids = owner, np.asarray(names)
        self._order = np.argsort(owner, kind="stable")
        self._ends = np.cumsum(np.bincount(owner, minlength=len(names)))

    @property
    def shape(self) -> tuple[int]:
        """Number of sets, as a shape: scikit-learn then indexes with arrays of set numbers."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"SetFrame({len(self)} sets, {len(self._owner)} rows, set={self.set!r})"

    def __getitem__(self, chosen: Any) -> SetFrame:
        """Return the chosen sets, in the given order."""
        chosen = chosen[0] if isinstance(chosen, tuple) else chosen  # [index, ...]
        places = np.atleast_1d(np.arange(len(self))[chosen])
        if len(np.unique(places)) < len(places):
            raise InputError("a set is chosen twice: its rows would become one larger set")
        starts = np.r_[0, self._ends[:-1]]
        rows = [self._order[starts[k] : self._ends[k]] for k in places]
        found = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        return SetFrame(self._rows[found.tolist()].to_native(), set=self.set)

    def per_set(self, column: str) -> Array:
        """Return a column that is constant within every set, such as the label: one entry each."""
        if column not in self._rows.columns:
            raise unknown("column", column, self._rows.columns)
        values = self._rows[column].to_numpy()
        return per_set(values, self._owner, len(self), what=f"column {column!r}")
