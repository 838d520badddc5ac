"""Cross-validation splitters that never divide a set, for tables, lists and `Sets`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, StratifiedKFold

from capnets.errors import InputError, unknown
from capnets.sets import Array

__all__ = ["GroupSetKFold", "SetKFold", "StratifiedSetKFold"]


class SetKFold(BaseCrossValidator):  # type: ignore[misc]
    """Divide sets into folds of equal size.

    For a table, training and test indices are rows, and all rows of a set are on the same side.
    For a list of arrays or `Sets`, indices are sets.

    Parameters
    ----------
    n_splits
        Number of folds.
    set
        Set column of a table. None for lists and `Sets`.
    shuffle, random_state
        Shuffle the sets before they are divided, with this seed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"basket": [7, 3, 7, 3, 5], "price": range(5)})
    >>> [test.tolist() for _, test in SetKFold(3, set="basket").split(frame)]
    [[0, 2], [1, 3], [4]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        set: str | None = None,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_splits = n_splits
        self.set = set
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Yield training and test indices: rows of a table, or positions of sets.

        Parameters
        ----------
        X
            The table or the sets.
        y, groups
            Classes and groups, one per row of a table or one per set; constant within a set.
        """
        owner = self._owners(X)
        count = int(owner.max()) + 1 if len(owner) else 0
        if count < self.n_splits:
            raise InputError(f"{count} sets cannot be divided into {self.n_splits} folds")
        labels = self._labels(y, groups)
        if labels is not None:
            labels = per_set(np.asarray(labels), owner, count)
        for _, test in self._folds(count, labels):
            held = np.isin(owner, test)
            yield np.flatnonzero(~held), np.flatnonzero(held)

    def _owners(self, X: Any) -> Array:
        """Return the number of the set of every row, or of every set."""
        if not (hasattr(X, "columns") or hasattr(X, "column_names")):
            if self.set is not None:
                raise InputError(
                    f"set={self.set!r} names a column, but X is a {type(X).__name__}, not a table"
                )
            return np.arange(len(X))
        names = list(getattr(X, "column_names", X.columns))
        if self.set is None:
            raise InputError(
                f"X is a table with one row per instance: name its set column, "
                f"{type(self).__name__}(set=...); columns: {', '.join(map(str, names[:8]))}"
            )
        if self.set not in names:
            raise unknown("set column", self.set, names)
        import pandas as pd

        owner, _ = pd.factorize(np.asarray(X[self.set]))
        if (owner < 0).any():
            raise InputError(f"column {self.set!r} is empty in row {int(np.argmax(owner < 0))}")
        return np.asarray(owner)

    def _labels(self, y: Any, groups: Any) -> Any:
        """Return the values that folds depend on."""
        return None

    def _folds(self, count: int, labels: Array | None) -> Iterator[tuple[Array, Array]]:
        """Yield folds of sets."""
        folds = KFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from folds.split(np.zeros(count))


class StratifiedSetKFold(SetKFold):
    """Divide sets into folds that hold every class in equal shares of sets.

    Parameters are those of `SetKFold`; `split` needs the classes as y.
    """

    def _labels(self, y: Any, groups: Any) -> Any:
        if y is None:
            raise InputError("y is missing: StratifiedSetKFold needs the class of every set")
        return y

    def _folds(self, count: int, labels: Array | None) -> Iterator[tuple[Array, Array]]:
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from folds.split(np.zeros(count), labels)


class GroupSetKFold(SetKFold):
    """Divide sets into folds that divide neither sets nor groups of sets.

    Parameters are those of `SetKFold`; `split` needs `groups`.
    """

    # With metadata routing enabled, groups given to a search reach this splitter.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def _labels(self, y: Any, groups: Any) -> Any:
        if groups is None:
            raise InputError("groups are missing: GroupSetKFold needs the group of every set")
        return groups

    def _folds(self, count: int, labels: Array | None) -> Iterator[tuple[Array, Array]]:
        folds = GroupKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from folds.split(np.zeros(count), groups=labels)


def per_set(values: Array, owner: Array, count: int, *, what: str = "classes and groups") -> Array:
    """Return one value per set, from one per set or one per row."""
    if len(values) not in (count, len(owner)):
        raise InputError(
            f"{len(values)} classes or groups; {count} (one per set) or {len(owner)} (one per row) "
            "needed"
        )
    if len(values) != len(owner):
        return values
    _, first = np.unique(owner, return_index=True)
    found = values[first]
    varies = values != found[owner]
    if varies.any():
        row = int(np.argmax(varies))
        raise InputError(
            f"the set of row {row} has {values[row]!r} there but {found[owner[row]]!r} in another "
            f"row; {what} must be constant within a set"
        )
    return np.asarray(found)
